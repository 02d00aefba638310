"""What all tests share: Hypothesis gives the same examples in every run and no test is judged by its speed."""

from hypothesis import settings

settings.register_profile("gortho", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("gortho")
