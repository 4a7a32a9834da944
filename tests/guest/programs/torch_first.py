"""The least that a PyTorch program does with a GPU."""

import torch

print((torch.ones(4, device="cuda") * 2).tolist())
