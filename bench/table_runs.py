"""Titles and remarks of the runs in bench/results, by file name; a run without an entry shows its command only.

"command" replaces the command that the file records where that one mixes commands with remarks.
"""

CHUNKS = "mpirun -n 4 bench_cuda_mlp --features 14336 --overlap off,4; torchrun --nproc-per-node 4 bench/peers/torch_mlp.py"
SHARE = "Each GPU then holds as many features as one of eight GPUs does with 28672 features."

NOTES = {
    "4-x-nvidia-h200-scaling_2026-11-22": {
        "title": "the MLP and the transformer block on 1, 2 and 4 GPUs",
        "command": "for N in 1, 2, 4: mpirun -n N bench_cuda_mlp --overlap auto; mpirun -n N bench_cuda_mlp --overlap auto "
                   "--block examples/transformer_block_tp.fusion; torchrun --standalone --nproc-per-node N "
                   "bench/peers/torch_mlp.py",
        "remarks": "All commands ran on one machine, one after another, at commit 67a6e76.",
    },
    "4-x-nvidia-h200_2026-11-22": {
        "title": "the MLP beside PyTorch, and collectives",
        "command": "mpirun -n 4 bench_cuda_mlp --overlap off,auto; torchrun --standalone --nproc-per-node 4 "
                   "bench/peers/torch_mlp.py; bench_cuda_collectives 16384 1048576 16777216",
        "remarks": "The first two commands ran on one machine, one after another. The third ran later.",
    },
    "4-x-nvidia-h200-chunks_2026-11-22": {
        "title": "lengths of chunks",
        "device": "4 x NVIDIA H200",
        "command": CHUNKS,
        "remarks": "The first table sets the lengths of the chunks by hand. `host/passes/chunk/cost_model.cpp` is fitted to "
                   "its times. Each of them is the median of three processes of `mpirun -n 4 bench_cuda_mlp`. The commands "
                   "above gave the other tables; they ran on one machine, one after another. With 14336 features on 4 "
                   "GPUs, each GPU holds 3584 features, as one of eight GPUs does with 28672.",
    },
    "2-x-nvidia-h200_2026-11-22": {
        "title": "collectives, the MLP and the transformer block",
        "command": "bench_cuda_collectives 16384 1048576 16777216; bench_cuda_mlp --overlap off,auto,4; bench_cuda_mlp "
                   "--overlap off,auto,4 --batch 4; bench_cuda_mlp --overlap off,auto,4 "
                   "--block examples/transformer_block_tp.fusion",
        "remarks": "Commit 3296f42.",
    },
    "2-x-nvidia-h200-lanes_2026-11-22": {
        "title": "collectives beside matrix products, by copy engines and by NCCL",
        "device": "2 x NVIDIA H200",
        "command": "bench_cuda_lanes; bench_cuda_mlp 4096 --features 7168 --overlap off,auto,2,4,8; "
                   "bench_cuda_mlp 16384 --features 7168 --overlap off,auto,4,8,16",
        "remarks": "The second command ended early: its first launches ran into a deadlock, which has been fixed since. "
                   + SHARE,
    },
    "nvidia-h200_2026-11-22": {
        "title": "attention, indexed ops and launches",
        "command": "bench_cuda_attention 20; bench_cuda_index 20; bench_cuda_dispatch; bench/peers/torch_attention.py; "
                   "bench/peers/torch_index.py",
        "remarks": "Commit 3296f42. `bench_cuda_dispatch` ran three times.",
    },
    "kernels-nvidia-h200_2026-11-22": {
        "title": "kernels that heddle generates",
        "remarks": "The report behind these figures does not state the command or the exact date. It gives a range, not times, "
                   "for the sums at odd sizes. The same report finds swiglu, Adam and the sums of [65536, 4096] at the "
                   "memory limit, but gives no times.",
    },
    "peers-block-nvidia-h200_2026-11-22": {
        "title": "a transformer block in heddle and PyTorch",
        "remarks": "The block has 32 heads of width 128, 16384 features, causal attention and bf16 tensors. The report "
                   "behind these figures does not state the commands.",
    },
    "peers-few-tokens-2-x-nvidia-h200_2026-11-22": {
        "title": "the MLP with few tokens in heddle and PyTorch",
        "remarks": "heddle's time is the best of its settings. The report behind these figures does not state the commands.",
    },
    "peers-cpu_2026-11-22": {
        "title": "heddle and PyTorch on the CPU",
        "remarks": "The floor is the time to move the bytes at the bandwidth of the plain copy. The report behind these "
                   "figures does not state the commands.",
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
        "remarks": SHARE,
    },
    "peers-nvidia-h200_2026-11-20": {
        "title": "PyTorch on one GPU, and host times of CUDA",
        "remarks": "The scripts flush the caches between runs. The floor is the time to move the bytes at the copy bandwidth "
                   "of the same run.",
    },
    "peers-8-x-nvidia-h200_2026-11-20": {
        "title": "PyTorch on 8 GPUs",
        "remarks": "NCCL times are averages of 20 to 100 calls in a row.",
    },
}
