"""Short laws for y: `Formula` (the value), `short_formula` (how it is found)."""

from gortho.formulas.find import short_formula
from gortho.formulas.problem import Problem
from gortho.formulas.terms import Factor, Monomial, Term
from gortho.formulas.values import Formula

__all__ = ["Factor", "Formula", "Monomial", "Problem", "Term", "short_formula"]
