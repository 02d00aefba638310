"""Files that the app is tested with: good ones, bad ones, and one whose search takes long."""

import gzip
import pickle

import numpy as np
import pandas as pd

#: Names of files that cannot be read.
BAD = [
    *("empty.csv", "numbers.csv", "names.csv", "ragged.csv", "short.csv", "twice.csv"),
    *("latin.csv", "wide.csv", "page.csv"),
    *("damaged.csv.gz", "picture.png", "model.pkl", "model.csv", "table.npz", "cut.parquet", "cut.npz"),
    *("cut.h5", "objects.npy"),
]


def law(rows=200, seed=0):
    """A table with a law of group O(1,1), a text column and a counter."""
    x = np.random.default_rng(seed).normal(size=(rows, 2))
    frame = pd.DataFrame(x, columns=["t", "s"])
    return frame.assign(
        event=np.arange(rows),
        colour=np.where(x[:, 0] > 0, "red", "blue"),
        y=x[:, 0] ** 2 - 2 * x[:, 1] ** 2,
    )


def long_search(path):
    """Several vectors and noise: seconds of search, on any machine."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 4, 4))
    gram = np.einsum("npi,i,nqi->npq", x, [1.0, -1.0, -1.0, -1.0], x)
    y = np.sin(gram[:, 0, 1]) + gram[:, 2, 3] / (1 + gram[:, 0, 0] ** 2) + 0.1 * rng.normal(size=1000)
    np.savez(path, X=x, y=y)
    return path


class Mark:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def bad_files(folder):
    """Files that cannot be read, and a word of what is said of each; a pickle that is loaded leaves folder/loaded."""
    objects = np.empty(1, dtype=object)
    objects[0] = Mark(folder / "loaded")
    good = law().to_csv(index=False)
    law().to_parquet(folder / "cut.parquet")
    np.savez(folder / "cut.npz", X=np.ones((300, 2)), y=np.ones(300))
    np.save(folder / "objects.npy", objects, allow_pickle=True)
    files = {
        "empty.csv": (b"", "is empty"),
        "numbers.csv": (b"1,2\n3,4\n", "no header"),
        "names.csv": (b"a,b,y\n", "no rows"),
        "ragged.csv": (b"a,b,y\n1,2,3\n1,2,3,4\n", "line 3 has 4 cells"),
        "short.csv": (b"a,b,y\n1,2,3\n1,2\n", "line 3 has 2 cells"),
        "twice.csv": (b"a,a,y\n1,2,3\n", "more than once"),
        "latin.csv": ("a,ä\n1,2\n".encode("latin-1"), "not UTF-8"),
        "wide.csv": (good.encode("utf-16"), "UTF-16"),
        "page.csv": (b"\n<!DOCTYPE html>\n<p>Sorry, not, found\n", "a web page: download the file itself"),
        "damaged.csv.gz": (gzip.compress(good.encode())[:200], "damaged one"),
        "picture.png": (b"\x89PNG", "suffix '.png'"),
        "model.pkl": (pickle.dumps(Mark(folder / "loaded")), "suffix '.pkl'"),
        "model.csv": (pickle.dumps(Mark(folder / "loaded")), "a pickle"),
        "table.npz": (good.encode(), "looks like text"),
        "cut.parquet": ((folder / "cut.parquet").read_bytes()[:200], "truncated or damaged"),
        "cut.npz": ((folder / "cut.npz").read_bytes()[:200], "truncated or damaged"),
        "cut.h5": (b"\x89HDF\r\n\x1a\n" + bytes(50), "truncated or damaged"),
        "objects.npy": ((folder / "objects.npy").read_bytes(), "Python objects"),
    }
    for name, (content, _) in files.items():
        (folder / name).write_bytes(content)
    assert list(files) == BAD
    return {name: words for name, (_, words) in files.items()}
