"""Titles and remarks of the runs in bench/results, by file name. A run without an entry shows only its command.

"command" replaces a recorded command that mixes commands with remarks. "more" is text after the first table.
"""

NOTES = {
    "block-nvidia-h200_2026-11-27": {
        "title": "a transformer block",
        "remarks": "The block has 32 heads of width 128, 16384 features, causal attention and bf16 tensors. A second "
                   "measurement gave 8.343 ms. The L2 cache is overwritten before each run, as for PyTorch on the same "
                   "day. How PyTorch's 8.83 ms of 2026-11-22 were measured is not recorded.",
    },
    "peers-block-nvidia-h200_2026-11-27": {
        "title": "a transformer block in PyTorch",
        "remarks": "Measured on another H200 than heddle's figure of the same day, by `torch_workloads.py`, which overwrites the L2 cache before each run.",
    },
    "kernels-nvidia-h200_2026-11-27": {
        "title": "the workloads of bench/workloads, and the main example",
        "remarks": "Measured at commit ff526ded. The floor is the time that a copy of the same bytes took in the same run.",
    },
    "kernels-nvidia-h200_2026-11-26": {
        "title": "the workloads of bench/workloads",
        "remarks": "Measured at commit 7d13329. The floor is the time that a copy of the same bytes took in the same "
                   "run. The choices of `heddle tune`, at commit 06afed0, gave 0.0761 ms for group_norm and 0.0384 ms for "
                   "rotary embedding. Each time with these choices was divided by the time " "without them. The geometric mean of these ratios is 0.994.",
    },
    "nvidia-h200_2026-11-26": {
        "title": "host times of launches and runs",
        "remarks": "`bench_cuda_dispatch` ran three times. heddle launches kernels with `cuLaunchKernelEx`, a function "
                   "of the driver. The plain loop calls `cudaLaunchKernelExC`, a slower function of the runtime.",
    },
    "kernels-nvidia-h100_2026-11-26": {
        "title": "the workloads of bench/workloads on an H100",
        "remarks": "Measured at commit 22ae369. The floor is the time that a copy of the same bytes took in the same "
                   "run. Another run on one H100 measured two commits, each twice: the older 30aefc6 and the newer "
                   "22ae369. cat + silu took 0.1483 and 0.1487 ms with the older commit, and 0.1403 and 0.1405 ms "
                   "with the newer one. layer_norm backward took 0.1562 and 0.1565 ms with the older commit, and "
                   "0.1514 and 0.1520 ms with the newer one. cross_entropy, dropout + layer_norm, group_norm, "
                   "layer_norm and softmax of 4096 elements took the same time with both commits. Their times are "
                   "close to that of a copy. The figure of softmax [2048, 50257] is missing, because its kernel has "
                   "changed since.",
    },
    "4-x-nvidia-h200-scaling_2026-11-22": {
        "title": "the MLP and the transformer block on 1, 2 and 4 GPUs",
        "command": "for N in 1, 2, 4: mpirun -n N bench_cuda_mlp --overlap auto; mpirun -n N bench_cuda_mlp "
                   "--overlap auto --block examples/transformer_block_tp.fusion; torchrun --standalone "
                   "--nproc-per-node N bench/peers/torch_mlp.py",
        "remarks": "All commands ran on one machine, one after another, at commit 67a6e76.",
    },
    "4-x-nvidia-h200_2026-11-22": {
        "title": "the MLP in heddle and PyTorch, and collectives",
        "command": "mpirun -n 4 bench_cuda_mlp --overlap off,auto; torchrun --standalone --nproc-per-node 4 "
                   "bench/peers/torch_mlp.py; bench_cuda_collectives 16384 1048576 16777216",
        "remarks": "The first two commands ran on one machine, one after another. The third ran separately.",
    },
    "4-x-nvidia-h200-chunks_2026-11-22": {
        "title": "lengths of chunks",
        "device": "4 x NVIDIA H200",
        "command": "mpirun -n 4 bench_cuda_mlp; mpirun -n 4 bench_cuda_mlp --features 14336; "
                   "mpirun -n 4 bench_cuda_mlp --features 14336 --overlap off,4; MLP_FEATURES=14336 torchrun "
                   "--nproc-per-node 4 bench/peers/torch_mlp.py",
        "remarks": "The first two commands gave the first table. The lengths of the chunks were set by hand. Each time "
                   "is the median of three processes. The constants of the cost model "
                   "(`host/passes/chunk/cost_constants.h`) are chosen so that the model predicts these times. In the "
                   "first column, the numbers are the relative lengths of the chunks. *Through both products*: each "
                   "chunk passes through both matrix products. *Of each collective*: each collective is split together "
                   "with the matrix product next to it.",
        "more": "The last two commands ran on one machine, one after another. With 14336 features, each of the 4 GPUs "
                "holds 3584 features. This gives each GPU the same load as 28672 features on 8 GPUs.",
    },
    "2-x-nvidia-h200_2026-11-22": {
        "title": "collectives, the MLP and the transformer block",
        "command": "bench_cuda_collectives 16384 1048576 16777216; bench_cuda_mlp --overlap off,auto,4; bench_cuda_mlp "
                   "--overlap off,auto,4 --batch 4; bench_cuda_mlp --overlap off,auto,4 "
                   "--block examples/transformer_block_tp.fusion",
        "remarks": "Measured at commit 3296f42.",
    },
    "2-x-nvidia-h200-lanes_2026-11-22": {
        "title": "collectives beside matrix products, by copy engines and by NCCL",
        "device": "2 x NVIDIA H200",
        "command": "bench_cuda_lanes; bench_cuda_mlp 4096 --features 7168 --overlap off,auto,2,4,8; "
                   "bench_cuda_mlp 16384 --features 7168 --overlap off,auto,4,8,16",
        "remarks": "A deadlock stopped the second command before its last cases. The deadlock has since been fixed. "
                   "`bench_cuda_lanes` was an earlier name of `bench_cuda_copy_channels`. With 7168 features, each of "
                   "the 2 GPUs holds 3584 features. This gives each GPU the same load as 28672 features on 8 GPUs.",
    },
    "nvidia-h200_2026-11-22": {
        "title": "attention, indexed ops and launches",
        "command": "bench_cuda_attention 20; bench_cuda_index 20; bench_cuda_dispatch; bench/peers/torch_attention.py; "
                   "bench/peers/torch_index.py",
        "remarks": "Measured at commit 3296f42. `bench_cuda_dispatch` ran three times.",
    },
    "kernels-nvidia-h200_2026-11-23": {
        "title": "the workloads of bench/workloads",
        "remarks": "Measured at commit 4389b8b, softmax [65536, 257] at a72e096. The floor is the time that a copy of "
                   "the same bytes took in the same run.",
    },
    "kernels-nvidia-h200_2026-11-22": {
        "title": "kernels that heddle generates",
        "remarks": "For the sums at odd sizes, only a range of bandwidths was recorded. Memory bandwidth limited swiglu, "
                   "Adam and the sums of [65536, 4096], but their times were not recorded. The floor is the time to "
                   "move the bytes at the copy bandwidth.",
    },
    "peers-block-nvidia-h200_2026-11-22": {
        "title": "a transformer block in heddle and PyTorch",
        "remarks": "The block has 32 heads of width 128, 16384 features, causal attention and bf16 tensors.",
    },
    "peers-few-tokens-2-x-nvidia-h200_2026-11-22": {
        "title": "the MLP with few tokens in heddle and PyTorch",
        "remarks": "heddle's time is the time of its fastest setting.",
    },
    "peers-cpu_2026-11-22": {
        "title": "heddle and PyTorch on the CPU",
        "remarks": "The floor is the time to move the bytes at the bandwidth of the plain copy.",
    },
    "nvidia-h200_2026-11-21": {
        "title": "the main example, matrix products and host times",
        "command": "bench/gpu.sh OUT build bench; bench_cuda_attention",
    },
    "4-x-nvidia-h200_2026-11-21": {
        "title": "collectives, the MLP and the transformer block",
    },
    "2-x-nvidia-h200_2026-11-21": {
        "title": "chunks communicated by NCCL",
        "command": "bench_cuda_mlp --features 7168 --overlap off,4:8,4:16; MLP_FEATURES=7168 torchrun --standalone "
                   "--nproc-per-node 2 bench/peers/torch_mlp.py",
        "remarks": "With 7168 features, each of the 2 GPUs holds 3584 features. This gives each GPU the same load "
                   "as 28672 features on 8 GPUs.",
    },
    "peers-nvidia-h200_2026-11-20": {
        "title": "PyTorch on one GPU, and host times of CUDA",
        "remarks": "The GPU caches were flushed before every run. The floor is the time to move the bytes at the copy "
                   "bandwidth of the same run.",
    },
    "peers-8-x-nvidia-h200_2026-11-20": {
        "title": "PyTorch on 8 GPUs",
        "remarks": "Each time of a collective is the average of 20 to 200 calls in a row.",
    },
}
