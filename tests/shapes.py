"""Shapes in the types of the mathematical core, such as ``Float[Tensor, "batch n"]``, checked while tests run."""

from beartype import BeartypeConf, beartype

#: Modules whose types tell shapes.
MODULES = ["gortho.forms", "gortho.groups", "gortho.volume", "gortho.skew", "gortho.nn.pairs"]
#: An int will do where a float is asked for, as everywhere in Python.
check = beartype(conf=BeartypeConf(is_pep484_tower=True))
