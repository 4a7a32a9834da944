"""One rank of torchrun; ranks.sh starts it. The ranks share a GPU if there is only one, and need no NCCL.

Ends with 1 if the result is wrong, with 77 if something is missing to build the kernel.
"""

import os

import marked
import torch_extension as extension

LAUNCHES = 3  # of each rank


def main():
    extension.need()
    import torch
    import torch.distributed as ranks

    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    ranks.init_process_group("gloo")
    rank, count = ranks.get_rank(), ranks.get_world_size()
    # The first rank builds, the others find what it built.
    if rank == 0:
        built = extension.library()
    ranks.barrier()
    if rank != 0:
        built = extension.library()
    x, weight, y = extension.arrays()
    x += rank
    for _ in range(LAUNCHES):
        extension.launch(built, x, weight, y)
    extension.check(x, weight, y)
    done = torch.tensor([LAUNCHES])
    ranks.all_reduce(done)
    ranks.destroy_process_group()
    if int(done) != count * LAUNCHES:
        marked.wrong(f"{int(done)} launches of {count} ranks")
    if rank == 0:
        marked.ok(int(done), int(done) * extension.EVENTS)


if __name__ == "__main__":
    main()
