import torch

torch.set_num_threads(1)  # the tests run side by side: threads of their own would only compete
