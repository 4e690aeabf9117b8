#!/usr/bin/env bash
# curves.sh CURVES FILE MPIEXEC NUMPROC_FLAG [PREFLAG...]: trainings have the losses of curves.tsv, bit by bit, on 1, 2 and 4 ranks, and a bit that
# differs is named. On a kind of machine that the file does not have, the losses of one rank are those of the others, and the rest is skipped.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../setup/support.sh"
program=$1 stored=$2 mpiexec=$3 ranks_flag=$4
preflags=("${@:5}")
cd "$scratch"
cp "$stored" own.tsv
run "$program" check own.tsv
known=$code
if [ "$known" = 77 ]; then
  run "$program" renew own.tsv 'a new kind of machine'
  expect_code 0
  run "$program" check own.tsv
fi
expect_code 0
for ranks in 2 4; do
  run "$mpiexec" "$ranks_flag" "$ranks" "${preflags[@]}" "$program" check own.tsv
  expect_code 0
done

# one bit of the last loss of one curve of this kind
head -n 1 own.tsv >none.tsv
run "$program" check none.tsv
expect_code 77
kind=$(sed -n 's/^no curves of the kind \([0-9a-f]* [^ ]*\) .*/\1/p' <<<"$output")
[ -n "$kind" ] || wrong 'the kind of this machine is not printed'
awk -F '\t' -v OFS='\t' -v kind="$kind" '$1 == kind && !done { n = length($3); last = substr($3, n); $3 = substr($3, 1, n - 1) (last == "0" ? "1" : "0"); done = 1 } 1' \
  own.tsv >planted.tsv
run "$program" check planted.tsv
expect_code 1
expect_line '^images, SGD with momentum, bf16, step 8: [0-9a-f]{16} \(.*\), stored [0-9a-f]{16} \('
[ "$(grep -c ', step ' <<<"$output")" = 1 ] || wrong 'curves that are the same are named as well'

# it is renewed with a reason only, and others keep theirs
run "$program" renew planted.tsv ''
expect_code 2
run "$program" renew planted.tsv 'planted'
expect_code 0
[ "$(grep -c $'\tplanted$' planted.tsv)" = 1 ] || wrong 'not one curve has the new reason'
diff <(cut -f 1-4 own.tsv) <(cut -f 1-4 planted.tsv) || wrong 'the renewed file has other losses'
if [ "$known" = 77 ]; then
  echo 'skipped: curves.tsv does not have this kind of machine'
  exit 77
fi
