#!/usr/bin/env bash
# batch.sh LOG PROGRAM FILTER [LAUNCHER...]: runs the cases that FILTER selects in one start of the ranks. A case that fails, hangs or ends the
# program ends that start; the cases after it run in the next one. Prints the failed cases at the end. Returns 1 if there are any.
set -euo pipefail

log=$1 program=$2 filter=$3
shift 3
export HORTATOR_TEST_BATCH=$log
rm -f "$log"
touch "$log"
rest=$log.rest failed=()

# Prints the cases that have not begun, one a line.
not_begun() {
  { "$program" -# "$filter" --list-test-names-only || true; } | sed '/^$/d' | grep -vxF -f <(sed -n 's/^begin\t//p' "$log") || true
}

selected=(-# "$filter")
while ! "$@" "$program" "${selected[@]}"; do
  last=$(tail -n 1 "$log")
  case $last in
    begin*) failed+=("${last#begin?}") ;;
    '') failed+=('the start of the program'); break ;;
    *) failed+=('the end of the program'); break ;;
  esac
  printf 'failed\t\n' >>"$log"
  not_begun | sed 's/[\\,"[]/\\&/g' >"$rest"  # Catch2 reads a comma as the end of a name
  [ -s "$rest" ] || break
  echo "batch: continues with $(wc -l <"$rest") further cases"
  selected=(-f "$rest")
done
if [ ${#failed[@]} -gt 0 ]; then
  while read -r name; do failed+=("$name (did not run)"); done < <(not_begun)
fi

count=$(grep -c '^passed' "$log" || true)
echo "batch: $count cases passed, ${#failed[@]} failed"
[ ${#failed[@]} -eq 0 ] || { printf 'failed: %s\n' "${failed[@]}"; exit 1; }
[ "$count" -gt 0 ] || { echo 'batch: no case was selected'; exit 1; }
