#!/bin/bash
# planted.sh BIN: errors of configuration are found by rehearsing one rank or two, without the others.
# shellcheck source=tests/integration/rehearsal/common.sh
. "$(dirname "$0")/common.sh"

# find_error TEXT RANKS RANK ARGUMENTS...
find_error() {
  local text=$1 ranks=$2 rank=$3
  shift 3
  local code=0
  "$bin/hortator" rehearse -n "$ranks" --rank "$rank" -- "$@" >output.log 2>&1 || code=$?
  [[ $code == 1 ]] || fail "exit code $code, expected 1: $*"
  grep -q -- "$text" output.log || fail "'$text' is not in: $(cat output.log)"
}

find_error "cannot be divided along dimension 0 in heads" 16 5 "${language_model[@]}" --tensor 16
find_error "must divide" 12 3 "${language_model[@]}" --tensor 8
find_error "must divide" 6 1 "${language_model[@]}" --pipeline 4
find_error "stages 2 and 3 would communicate" 8 7 "${language_model[@]}" --pipeline 2 --zero 3
find_error "stages" 16 0 "${language_model[@]}" --pipeline 16
find_error "batch" 64 63 "${language_model[@]}" --batch-size 7
find_error "ended before its second update" 2 1 "${language_model[@]}" --steps 1
exit $((fails > 0))
