#!/bin/sh
# What a first hour on a GPU should bring, the quickest and most useful first, so that it can be cut
# off anywhere:  sh benchmarks/first_gpu_hour.sh WIKITEXT-2 [FOLDER]
# Each part writes a file of its own into FOLDER (gpu-hour); a part that fails does not end the others,
# but the exit code is then 1. Runs are resumed when the script is started again.
# TRY=1 starts every command with tiny sizes on the CPU.
data=${1:?give the folder of WikiText-2}
out=${2:-gpu-hour}
device=cuda
failed=0
mkdir -p "$out"
if [ -n "${TRY:-}" ]; then
    device=cpu
    set -- --set data.size=300 --set data.tokens=9000 --set model.d=8 --set model.hidden=8 \
        --set training.batch=4 --set training.bptt=8 --set training.epochs=1 --set training.threads=1 \
        --set evaluation.tokens=500 --set geometry.every=1000
else
    set --
fi

part() {
    name=$1
    shift
    echo "== $name: $*"
    "$@" > "$out/$name.txt" 2>&1 || { failed=1; echo "   failed; see $out/$name.txt"; }
}

# The size of a benchmark; the option for a folder that holds runs of an earlier start.
size() { if [ -n "${TRY:-}" ]; then echo tiny --rounds 2; else echo "$1"; fi; }
again() { if [ -e "$out/$1/train.toml" ]; then echo --resume; fi; }

# 1. One minute: does a whole study run on the device, in each precision?
for precision in float32 tf32 bf16; do
    part "works-$precision" embgeo train --preset tiny-cpu --data "$data" --device $device --seeds 1 \
        --compare mle,cosreg,sc-exp,frage,al,adversarial,coupled-adam "$@" \
        $(again "works-$precision") --set training.steps=30 --set data.tokens=200000 --set training.precision="$precision" \
        -o "$out/works-$precision"
done
# 2. A few minutes: steps against plain torch.
for step in lstm:wt2 translation:base llama:preset xl:preset; do
    part "step-${step%:*}" python benchmarks/steps.py "${step%:*}" --size $(size "${step#*:}") \
        --device $device
done
# 3. What each method costs in time, then in memory.
for precision in float32 bf16; do
    part "overhead-$precision" python benchmarks/regularizer_cost.py --size $(size wt2) \
        --device $device --precision $precision
done
part memory python benchmarks/regularizer_cost.py --size $(size wt2) --device $device --memory
# 4. Analysis on the device.
if [ -n "${TRY:-}" ]; then
    part analysis python benchmarks/gpu.py --device torch-cpu --rows 400 --columns 16 --out "$out"
else
    part analysis python benchmarks/gpu.py
fi
# 5. Half an hour: the published 70.7 of one cycle, and the methods beside it.
part wt2-mle embgeo train --preset wt2-cycle --data "$data" --device $device --compare mle "$@" \
    $(again wt2) -o "$out/wt2"
part wt2 embgeo train --resume --jobs 3 -o "$out/wt2" --compare cosreg,sc-exp,coupled-adam
# 6. As long as there is time: three seeds of everything.
part wt2-seeds embgeo train --resume --jobs 4 -o "$out/wt2" --seeds 3 \
    --compare sc-poly,frage,al,re,real,adversarial
exit $failed
