#!/usr/bin/env bash
# What vLLM's scores are worth on this machine, and how fast they come. One command, ten minutes:
#
#     bash bench/gpu.sh [MODEL] [FOLDER]      # by default Qwen/Qwen2.5-0.5B-Instruct, gpu-results
#
# 1. agreement   vllm: beside hf: with the same weights: log-likelihoods and choices
# 2. order       64 prompts in two orders, with the prefix cache off and on (vllm#42019)
# 3. speed       vllm: beside 'lm-eval --model vllm' on the same prompts
# 4. planning    a million simulated cells, to hold against the prompts a second of 3
#
# Every part is a process of its own, so that each has the whole GPU. What they print is in
# FOLDER/summary.txt. An environment with falter[vllm,hf,lm-eval] is made unless PYTHON names one:
#
#     PYTHON=python ITEMS=20 CELLS=10000 ENGINE=hf REFERENCE=hf BACKEND=hf bash bench/gpu.sh smollm2
#
# goes through all of it on a machine without a GPU.
set -euo pipefail

model=${1:-Qwen/Qwen2.5-0.5B-Instruct}
folder=${2:-gpu-results}
items=${ITEMS:-264}
cells=${CELLS:-1000000}
engine=${ENGINE:-vllm}       # the engine under test, and the one beside it
reference=${REFERENCE:-hf}
backend=${BACKEND:-vllm}     # of lm-evaluation-harness
harness_args=${HARNESS_ARGS:-pretrained=$model,dtype=bfloat16,gpu_memory_utilization=0.8}
here=$(cd "$(dirname "$0")" && pwd)

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
summary=$folder/summary.txt
: >"$summary"

if [ -z "${PYTHON:-}" ]; then
  if ! command -v nvidia-smi >/dev/null; then
    echo "error: there is no GPU here (no nvidia-smi)" >&2
    echo "hint: the head of this file says how to go through it without one" >&2
    exit 2
  fi
  python3 -m venv "$folder/venv"
  PYTHON=$folder/venv/bin/python
  "$PYTHON" -m pip install --quiet --editable "$here/..[vllm,hf,lm-eval]"
fi
export HF_HUB_DISABLE_TELEMETRY=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1

failures=0
part() { # NAME COMMAND…: what it prints goes to the summary, what it says to a log
  local name=$1
  shift
  echo "== $name"
  if "$@" 2>"$folder/$name.log" | tee -a "$summary"; then
    return 0
  fi
  echo "$name FAILED; the end of $folder/$name.log:" | tee -a "$summary"
  tail -n 5 "$folder/$name.log" | tee -a "$summary"
  failures=$((failures + 1))
}
score() { # NAME ENGINE ARGUMENT…
  local name=$1 which=$2
  shift 2
  part "$name" "$PYTHON" "$here/gpu.py" score --engine "$which:$model" --items "$items" \
    --out "$folder/$name.jsonl" "$@"
}
compare() { # NAME ONE TWO ARGUMENT…
  local name=$1 one=$2 two=$3
  shift 3
  part "$name" "$PYTHON" "$here/gpu.py" compare "$folder/$one.jsonl" "$folder/$two.jsonl" "$@"
}

bfloat16=()
caching=()
off=()
if [ "$engine" = vllm ]; then
  bfloat16=(--option dtype=bfloat16 --option gpu_memory_utilization=0.8)
  caching=(--option enable_prefix_caching=true)
  off=(--option enable_prefix_caching=false)
fi
same=()
if [ "$reference" = hf ] && [ "$engine" = vllm ]; then
  same=(--option dtype=bfloat16)
fi
if command -v nvidia-smi >/dev/null; then
  nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader | tee -a "$summary"
fi

score engine "$engine" "${bfloat16[@]}" "${off[@]}"
score reference "$reference" "${same[@]}"
compare agreement engine reference

for order in 1 2; do
  score "order-$order-off" "$engine" --prompts 64 --order "$order" "${bfloat16[@]}" "${off[@]}"
  score "order-$order-on" "$engine" --prompts 64 --order "$order" "${bfloat16[@]}" "${caching[@]}"
done
compare order-cache-off order-1-off order-2-off
compare order-cache-on order-1-on order-2-on

part harness "$PYTHON" "$here/gpu.py" harness --backend "$backend" --args "$harness_args" \
  --items "$items" --out "$folder/harness.jsonl"
compare speed engine harness

part planning "$PYTHON" "$here/waiting.py" --rows $((cells / 13)) --large $((cells / 13)) --only plan
part summary "$PYTHON" "$here/gpu.py" summary "$folder"
echo "$summary holds the whole of it; $failures parts failed"
[ "$failures" = 0 ]
