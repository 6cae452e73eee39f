#!/usr/bin/env bash
# Runs everything that needs a GPU, on a machine with one GPU or more. Builds heddle and runs the
# gpu tests, also under compute-sanitizer. Then runs the examples, the benchmarks, and scripts in
# bench/peers that time PyTorch.
#
#   bench/gpu.sh RESULT_DIR [build|tests|sanitize|examples|bench|multi|sanitize_nccl|starts ...]
#
# If no stage is given, all stages run except the last three, which need two GPUs. The script writes
# logs and benchmark lines (one JSON object each) to RESULT_DIR. After a failed stage the later
# stages still run; the script names the failed stages at the end and exits with 1.
set -uo pipefail
cd "$(dirname "$0")/.."
results=$(realpath -m "${1:?usage: bench/gpu.sh RESULT_DIR [stage ...]}")
shift
stages=("$@")
[ ${#stages[@]} -gt 0 ] || stages=(build tests sanitize examples bench)
mkdir -p "$results"
build=build/release
failed=()
# Examples that run with four ranks of one process on one GPU.
sharded="tp_mlp sp_mlp layer_norm_sharded embedding_vocab_sharded dp_tp_2d attention_tp transformer_block_tp
  pipeline_2stage between_meshes all_reshardings"

gpus=$(nvidia-smi -L 2>/dev/null | wc -l)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export HEDDLE_CACHE_DIR=${HEDDLE_CACHE_DIR:-$PWD/build/kernel_cache}

build() {
  cmake --preset release >"$results/configure.log" 2>&1 || { tail -30 "$results/configure.log"; return 1; }
  cmake --build --preset release --target all bench -- -k 0 >"$results/build.log" 2>&1 ||
    { grep -E "error|FAILED" "$results/build.log" | head -40; return 1; }
}

tests() {
  ctest --test-dir $build -L gpu --output-on-failure -j 4 --timeout 300 >"$results/tests.log" 2>&1
  local status=$?
  grep -E "tests passed|Failed|\*\*\*" "$results/tests.log" | tail -40
  return $status
}

sanitize() {
  local status=0
  for exe in $build/bin/*_gpu_tests; do
    for tool in memcheck racecheck; do
      timeout 240 compute-sanitizer --tool $tool --report-api-errors no --error-exitcode 9 --print-limit 5 "$exe" \
        --gtest_filter='-*OutOfMemory*:*LateError*' >"$results/sanitize_$tool.$(basename "$exe").log" 2>&1 ||
        { echo "$tool $(basename "$exe") failed"; status=1; }
      tail -3 "$results/sanitize_$tool.$(basename "$exe").log"
    done
  done
  for file in $sharded; do
    timeout 120 compute-sanitizer --report-api-errors no --error-exitcode 9 --print-limit 5 $build/bin/heddle run \
      examples/$file.fusion --device cuda --ranks 4 --check=full >"$results/sanitize.$file.log" 2>&1 ||
      { echo "memcheck $file failed"; tail -5 "$results/sanitize.$file.log"; status=1; }
  done
  return $status
}

examples() {
  local status=0
  for file in gelu_backward_bias_grad softmax layer_norm swiglu; do
    $build/bin/heddle run examples/$file.fusion --device cuda --check=full --repeat 5 || status=1
  done
  for file in $sharded; do
    $build/bin/heddle run examples/$file.fusion --device cuda --ranks 4 --check=full | grep -E "^check" || status=1
  done
  $build/bin/heddle run examples/moe_dispatch_combine.hostir --device cuda --ranks 4 \
    --reference examples/moe_dispatch_combine.fusion --check=full | grep -E "^check" || status=1
  for file in ring_allgather uneven_exchange; do
    $build/bin/heddle run examples/$file.hostir --device cuda --ranks 3 || status=1
  done
  $build/bin/heddle run examples/in_place_loop.hostir --device cuda || status=1
  return $status
}

bench() {
  local status=0
  : >"$results/bench.jsonl"
  for exe in $build/bin/bench_*; do
    [ -x "$exe" ] || continue
    case $exe in *bench_cuda_mlp | *bench_cuda_collectives | *bench_cuda_copy_channels) continue ;; esac
    "$exe" >>"$results/bench.jsonl" || status=1
  done
  python3 bench/peers/torch_main_example.py >>"$results/bench.jsonl" || status=1
  python3 bench/peers/torch_matmul.py "$results/bench.jsonl" >>"$results/bench.jsonl" || status=1
  python3 bench/peers/torch_attention.py "$results/bench.jsonl" >>"$results/bench.jsonl" || status=1
  python3 bench/peers/torch_index.py "$results/bench.jsonl" >>"$results/bench.jsonl" || status=1
  cat "$results/bench.jsonl"
  return $status
}

# Needs at least two GPUs.
multi() {
  local status=0
  $build/bin/bench_cuda_collectives >"$results/multi.jsonl" || status=1
  mpirun -n "$gpus" $build/bin/bench_cuda_mlp --overlap off,auto,4 >>"$results/multi.jsonl" || status=1
  $build/bin/bench_cuda_copy_channels >>"$results/multi.jsonl" || status=1
  for size in 2 4 8; do
    [ $size -gt "$gpus" ] || mpirun -n $size $build/bin/bench_cuda_mlp --overlap off,auto \
      --block examples/transformer_block_tp.fusion >>"$results/multi.jsonl" || status=1
  done
  torchrun --standalone --nproc-per-node "$gpus" bench/peers/torch_mlp.py >>"$results/multi.jsonl" || status=1
  cat "$results/multi.jsonl"
  return $status
}

# Needs two GPUs. Checks heddle's kernels in programs that also run NCCL's kernels. NCCL's kernels
# themselves are not checked, because they wait for each other and write to each other's memory on
# purpose.
sanitize_nccl() {
  local status=0 sanitizer tool file name
  case $(compute-sanitizer --help 2>&1) in
    *--kernel-name-exclude*) sanitizer="--kernel-name-exclude kernel_substring=nccl" ;;
    *) sanitizer="--exclude kernel_substring=nccl" ;;
  esac
  sanitizer="timeout 240 compute-sanitizer --report-api-errors no --error-exitcode 9 --print-limit 5 $sanitizer"
  # checked NAME COMMAND...: runs the command. If it fails, prints the end of its output.
  checked() {
    name=$1
    shift
    "$@" >"$results/sanitize_nccl.$name.log" 2>&1 && return
    echo "$name failed"
    tail -5 "$results/sanitize_nccl.$name.log"
    status=1
  }
  checked memcheck.comm $sanitizer --tool memcheck $build/bin/comm_gpu_tests --gtest_filter='NcclThreads.Conforms'
  for tool in memcheck racecheck; do
    for file in tp_mlp sp_mlp dp_tp_2d transformer_block_tp all_reshardings; do
      checked $tool.$file $sanitizer --tool $tool $build/bin/heddle run examples/$file.fusion --device cuda --ranks 2 \
        --check=full
    done
  done
  checked memcheck.moe $sanitizer --tool memcheck $build/bin/heddle run examples/moe_dispatch_combine.hostir \
    --device cuda --ranks 2 --check=full
  checked memcheck.mpi mpirun -n 2 $sanitizer --tool memcheck $build/bin/heddle run examples/tp_mlp.fusion \
    --device cuda --check=full
  grep -h "ERROR SUMMARY" "$results"/sanitize_nccl.*.log | sort | uniq -c
  return $status
}

# Needs two GPUs. Measures the time to create NCCL's communicators, one per team and number of
# thread blocks.
starts() {
  local status=0 file overlap
  : >"$results/starts.txt"
  for file in tp_mlp dp_tp_2d transformer_block_tp all_reshardings; do
    for overlap in off auto 4; do
      echo "$file --overlap $overlap" >>"$results/starts.txt"
      mpirun -n 2 $build/bin/heddle run examples/$file.fusion --device cuda --overlap $overlap |
        grep -E "^(start|time)" >>"$results/starts.txt" || status=1
    done
  done
  cat "$results/starts.txt"
  return $status
}

for stage in "${stages[@]}"; do
  echo "==== $stage ($(date +%T))"
  $stage || failed+=("$stage")
done
echo "==== done ($(date +%T)); failed: ${failed[*]:-none}"
[ ${#failed[@]} -eq 0 ]
