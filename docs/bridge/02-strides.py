"""Stage 2 in PyTorch: a transposed view has other strides; data_ptr() alone does not tell, is_contiguous() does."""
import torch

x = torch.arange(24.0).reshape(2, 3, 4)
view = x.transpose(1, 2)
print("shape", tuple(view.shape), "strides", view.stride(), "contiguous", view.is_contiguous())
assert view.data_ptr() == x.data_ptr() and not view.is_contiguous()

# A kernel that gets the pointer and assumes rows reads this:
as_a_kernel_reads_it = torch.as_strided(view, view.shape, (12, 3, 1))
assert not torch.equal(as_a_kernel_reads_it, view)

remedy = view.contiguous()  # a copy; or hand the strides to the kernel
assert torch.equal(torch.as_strided(remedy, view.shape, (12, 3, 1)), view)
