"""Workers: they end with the process that started them, also before their first task."""

import multiprocessing
import os
import time

import pytest

from gortho.discovery.workers import as_done, serve


def begin(parent):
    serve(parent)
    time.sleep(30)


def test_a_worker_whose_parent_is_gone_ends():
    process = multiprocessing.get_context("fork").Process(target=begin, args=(0,))
    process.start()
    process.join(20)
    assert process.exitcode == 1


def test_processes_serve_before_they_are_given_anything(monkeypatch):
    joblib, given = pytest.importorskip("joblib"), {}

    def pool(**options):
        given.update(options)
        return lambda tasks: tasks

    monkeypatch.setattr(joblib, "Parallel", pool)
    as_done(pow, [(2, 3)], 2)
    assert given["initializer"] is serve and given["initargs"] == (os.getpid(),)
