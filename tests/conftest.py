"""What all tests share: Hypothesis gives the same examples in every run and no test is judged by its speed."""

import torch
from hypothesis import settings

settings.register_profile("gortho", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("gortho")
torch.set_num_threads(1)  # tensors are small here: threads that wait for each other only cost time
