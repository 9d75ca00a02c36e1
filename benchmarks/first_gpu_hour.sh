#!/bin/sh
# What a first hour on a GPU should bring, the quickest and most useful first, so that it can be cut
# off anywhere:  sh benchmarks/first_gpu_hour.sh WIKITEXT-2 [FOLDER]
# Each part writes a file of its own into FOLDER (gpu-hour); a part that fails does not end the others.
# Runs are resumed when the script is started again.
data=${1:?give the folder of WikiText-2}
out=${2:-gpu-hour}
mkdir -p "$out"

part() {
    name=$1
    shift
    echo "== $name: $*"
    "$@" > "$out/$name.txt" 2>&1 || echo "   failed; see $out/$name.txt"
}

# 1. One minute: does a whole study run on the device, in each precision?
for precision in float32 tf32 bf16; do
    part "works-$precision" embgeo train --preset tiny-cpu --data "$data" --device cuda --seeds 1 \
        --compare mle,cosreg,sc-exp,frage,al,adversarial,coupled-adam \
        --set training.steps=30 --set data.tokens=200000 --set training.precision="$precision" \
        -o "$out/works-$precision"
done
# 2. A few minutes: steps against plain torch.
for step in training:wt2 translation:base llama:cpu xl:cpu mixture:cpu rcnn:cpu skip_gram:cpu; do
    size=${step#*:}
    step=${step%:*}
    part "step-$step" python "benchmarks/${step}_step.py" --size "$size" --device cuda
done
# 3. What each method costs in time, then in memory.
part overhead python benchmarks/regularizer_cost.py --size wt2 --device cuda
part overhead-bf16 python benchmarks/regularizer_cost.py --size wt2 --device cuda --precision bf16
part memory python benchmarks/regularizer_cost.py --size wt2 --device cuda --memory
# 4. Analysis on the device.
part analysis python benchmarks/gpu.py
# 5. Half an hour: the published 70.7 of one cycle, and the methods beside it.
part wt2-mle embgeo train --preset wt2-cycle --data "$data" --device cuda --compare mle \
    -o "$out/wt2"
part wt2 embgeo train --resume --jobs 3 -o "$out/wt2" --compare cosreg,sc-exp,coupled-adam
# 6. As long as there is time: three seeds of everything.
part wt2-seeds embgeo train --resume --jobs 4 -o "$out/wt2" --seeds 3 \
    --compare sc-poly,frage,al,re,real,adversarial
