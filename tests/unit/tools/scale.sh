#!/usr/bin/env bash
# hortator scale as users call it: scale.sh HORTATOR SLEEPING CAIRO, where CAIRO is 1 in a build with Cairo. Prints each failure and exits with 1.
set -u
hortator=$1
sleeping=$2
cairo=$3
# shellcheck source=tests/unit/tools/support.sh
. "$(dirname "$0")/support.sh"

run scale --help; code_is 0; out_has 'usage: hortator'
run scale strong --help; code_is 0; out_has 'usage: hortator'
run scale; code_is 2; err_has 'The kind of scaling is missing'
run scale stong; code_is 2; err_has "did you mean 'strong'?"
run scale strong -- "$sleeping"; code_is 2; err_has 'Expected sizes by either --nodes or --ranks'
run scale strong --ranks 1,2; code_is 2; err_has 'The program is missing'
run scale strong --ranks 2,1 -- "$sleeping"; code_is 2; err_has "--ranks: expected ascending whole numbers from 1, got '2,1'"
run scale strong --nodes 1,2 -- "$sleeping"; code_is 2; err_has '--nodes needs --ranks-per-node'
run scale strong --ranks 1,2 --submit -- "$sleeping"; code_is 2; err_has '--submit cannot be used with --ranks'
run scale strong --ranks 1,2 --peak-flops 0 -- "$sleeping"; code_is 2; err_has '--peak-flops: expected a number above 0'
# what a launch knows reaches each run
cat >noting <<SH
#!/bin/sh
echo "\$SEEN \$HORTATOR_MIXED_PRECISION" >>"$work/noted"
exec "$sleeping" weak 10 5
SH
chmod +x noting
run scale weak --ranks 1 --repeats 1 --environment SEEN=yes --mixed-precision bf16 --out runs/flags -- ./noting; code_is 0
[ "$(<noted)" = 'yes bf16' ] || wrong "the flags of a launch: $(<noted)"
run scale weak --ranks 1 --run-dir x -- "$sleeping"; code_is 2
rm -rf runs/scale
run scale weak --ranks 1,2 --repeats 1 --out runs/false -- /bin/false; code_is 1; err_has 'ended with exit code'
run scale weak --ranks 1,2 --repeats 1 --out runs/true -- /bin/true; code_is 1; err_has 'has measured nothing'
# A step sleeps instead of computing, so that ranks which share cores do not slow each other down.
while read -r kind milliseconds repeats options; do
  # shellcheck disable=SC2086
  run scale "$kind" --ranks 1,2,3,4 --peak-flops 1e9 $options --out "runs/$kind" -- "$sleeping" "$kind" 10 "$milliseconds"; code_is 0
  out_has 'efficiency'; out_has "4 ranks, repeat $repeats of $repeats"; out_has 'report: '; out_has 'MFU'
  for file in report.md scaling.svg collectives.json "point_4_$repeats.json"; do [ -s "runs/$kind/$file" ] || wrong "no $file"; done
  [ "$cairo" != 1 ] || [ -s "runs/$kind/scaling.png" ] || wrong 'no scaling.png'
  # forward and the weights' gradients of a layer of 64 x 64, for 4 rows
  grep -q '"flops_per_update": 65536' "runs/$kind/point_1_1.json" || wrong 'the operations are not those of the program'
  # the model predicts a size that was left out within 15 %
  errors=$(sed -nE 's/^\| [0-9].*\(([+-][0-9]+) %\) \|$/\1/p' "runs/$kind/report.md")
  [ "$(grep -c . <<<"$errors")" = 3 ] || wrong 'three sizes were to be left out'
  for error in $errors; do [ "${error#[+-]}" -le 15 ] || wrong "the model errs by $error %: $(<"runs/$kind/report.md")"; done
done <<<'strong 240 2 --repeats 2
weak 150 1 --repeats 1'
run scale strong --ranks 1,2 --out runs/strong -- "$sleeping" strong 5 5; code_is 2; err_has 'A study already exists'
run plot runs/strong -o scaling.svg; code_is 0; grep -q 'Speed-up' scaling.svg || wrong 'no speed-up'
rm runs/strong/point_2_1.json
run scale report runs/strong; code_is 1; err_has 'missing runs: 2 ranks, repeat 1'
run scale run runs/strong 2; code_is 0; out_has 'report: '
sed -i 's/"identity": "/"identity": "other /' runs/strong/point_2_1.json
run scale report runs/strong; code_is 1; err_has 'differ in versions'

# jobs, with a scheduler that only records its arguments
mkdir -p fakes
# shellcheck disable=SC2016
printf '#!/bin/sh\necho "sbatch $*" >>"%s/asked"\necho 77\n' "$work" >fakes/sbatch
chmod +x fakes/sbatch
PATH=$work/fakes:$PATH run scale strong --nodes 1,2,4 --ranks-per-node 2 --time 00:10:00 --account abc --out runs/jobs --submit -- "$sleeping" strong 5 5
code_is 0; out_has 'submitted: 77'
grep -q '"repeats": 3' runs/jobs/plan.json || wrong 'three runs of each size are the default'
[ "$(wc -l <asked)" = 3 ] || wrong 'three jobs were expected'
for line in '--nodes=4' '--account=abc'; do grep -q "^#SBATCH $line" runs/jobs/job_8.sh || wrong "the job does not have $line"; done
grep -q "scale run $work/runs/jobs 8" runs/jobs/job_8.sh || wrong 'the command'
if grep -q -- '--requeue' runs/jobs/job_8.sh; then wrong 'a part of a study must not be run twice'; fi

[ "$failures" = 0 ] || { echo "$failures wrong"; exit 1; }
