"""Files are written as a whole or not at all, and a directory has one writer at a time."""

import errno
import multiprocessing

import pytest
from safetensors import SafetensorError

from gortho.files import Busy, append_lines, json_lines, only_writer, whole, write_text, write_whole


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_error_leaves_the_old_file(tmp_path, error):
    file = tmp_path / "a.txt"
    write_text(file, "old")
    with pytest.raises(error), whole(file) as part:
        part.write_text("half")
        raise error
    assert file.read_text() == "old" and list(tmp_path.iterdir()) == [file]
    write_text(file, "new")
    assert file.read_text() == "new" and list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        SafetensorError("I/O error: No space left on device (os error 28)"),
    ],
)
def test_a_full_disk_loses_nothing_and_is_named(tmp_path, error):
    file = tmp_path / "a.txt"
    write_text(file, "old")

    def write(place):
        place.write_text("half")
        raise error

    with pytest.raises(
        OSError, match=r"no space left to write .*a\.txt; what was there is kept: free some space"
    ):
        write_whole(file, write)
    assert file.read_text() == "old" and list(tmp_path.iterdir()) == [file]


def hold(directory, held, done):
    with only_writer(directory):
        held.set()
        done.wait()


def test_one_writer_at_a_time_and_a_killed_one_holds_nothing(tmp_path):
    context = multiprocessing.get_context("spawn")
    held, done = context.Event(), context.Event()
    other = context.Process(target=hold, args=(tmp_path, held, done))
    other.start()
    assert held.wait(60)
    with pytest.raises(Busy, match="another run is writing to"), only_writer(tmp_path):
        pass
    other.kill()
    other.join()
    with only_writer(tmp_path):
        pass


def test_a_torn_last_line_costs_itself_alone(tmp_path):
    file = tmp_path / "rows.jsonl"
    assert json_lines(file) == []
    append_lines(file, ['{"a": 1}', '{"a": "\u2028"}'])
    with file.open("a") as torn:
        torn.write('{"a": 3, "b')
    append_lines(file, ['{"a": 4}'])
    assert [row["a"] for row in json_lines(file)] == [1, "\u2028", 4]
