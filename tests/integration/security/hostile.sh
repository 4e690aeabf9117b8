#!/usr/bin/env bash
# hostile.sh HORTATOR PROGRAM: values that a shell or a terminal would obey, in every option of `launch` and `job` and in every text of a run folder, are refused or
# stay what they are: nothing in them is executed, reaches a terminal or becomes markup. What a run creates can be written by its user only. PROGRAM: the example gpt.
set -uo pipefail
hortator=$1 program=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
wrong() { echo "failed: $1" >&2; exit 1; }

# Stand-ins for what the printed commands call: a launcher notes its arguments, a line each.
mkdir stubs
for name in mpirun mpiexec srun; do
  # shellcheck disable=SC2016
  printf '#!/bin/sh\nprintf "%%s\\n" "$@" >>"%s"\n' "$work/arguments" >"stubs/$name"
done
for name in hortator sbatch qsub scontrol scancel sacct pbsdsh; do printf '#!/bin/sh\nexit 0\n' >"stubs/$name"; done
chmod +x stubs/*
run_as_user() { PATH=$work/stubs:$PATH timeout 20 bash "$@" >/dev/null 2>&1 </dev/null; }

# shellcheck disable=SC2016
hostile=('x$(touch OBEYED)`touch OBEYED`;touch OBEYED|touch OBEYED&' "';touch OBEYED;'" '";touch OBEYED;"' $'a\ntouch OBEYED')
for i in 0 1 2 3; do
  case $i in 1) quote="'" ;; 2) quote='"' ;; *) quote='' ;; esac
  printf 'echo %s%s%s\n' "$quote" "${hostile[i]}" "$quote" >control.sh
  run_as_user control.sh
  [ -e OBEYED ] || wrong "value $i does nothing where it is not quoted, so the test shows nothing"
  rm OBEYED
done

options_of() { "$hortator" "$1" --help | grep -oE '^  (-[a-zA-Z] \[ )?--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+'; }
accepted=0
# try OPTION COMMAND...: prints the script of the command, and runs it.
try() {
  local option=$1
  shift
  "$@" >script.sh 2>/dev/null || return 0
  accepted=$((accepted + 1))
  run_as_user script.sh
  [ ! -e OBEYED ] || wrong "$option: $(grep -n OBEYED script.sh | head -3)"
}
for value in "${hostile[@]}"; do
  for option in $(options_of launch); do try "launch $option" "$hortator" launch -n 1 "$option" "$value" --dry-run true "$value"; done
  for scheduler in slurm pbs; do
    for option in $(options_of job); do
      if [ "$option" = --submit ]; then continue; fi
      try "job $option" "$hortator" job --scheduler "$scheduler" --nodes 1 --time 10:00 "$option" "$value" -- true "$value"
    done
  done
done
[ "$accepted" -ge 100 ] || wrong "only $accepted values were accepted"
grep -qxF -- "${hostile[0]}" arguments || wrong 'the argument of a program did not arrive as it was given'
echo "$accepted scripts ran, and obeyed nothing"

# A run folder of another user.
(umask 022 && "$hortator" launch -n 2 "$program" --steps 6 --layers 1 --width 16 --heads 2 --run-dir run >output 2>&1) || wrong "the run: $(tail -3 output)"
writable=$(find run -perm /022 ! -type l)
[ -z "$writable" ] || wrong "others may write $writable"
python3 - <<'EOF'
import json, pathlib

def hostile(value):
    if isinstance(value, str):
        return value + '\u001b]0;OBEYED\u0007\u001b[31m</script><script>obeyed()</script>\n$(touch OBEYED)`touch OBEYED`'
    if isinstance(value, list):
        return [hostile(one) for one in value]
    return {name: hostile(one) for name, one in value.items()} if isinstance(value, dict) else value

for file in pathlib.Path('run').rglob('*.json*'):
    lines = [file.read_text()] if file.suffix == '.json' else file.read_text().splitlines()
    file.write_text('\n'.join(json.dumps(hostile(json.loads(line))) for line in lines) + '\n')
EOF
for command in 'watch --once run' 'why run' 'checkpoint list run' 'checkpoint show run/checkpoint' 'checkpoint verify run/checkpoint' 'compare-runs run run' \
  'plot run -o plot.svg' 'watch --html page.html run'; do
  # shellcheck disable=SC2086
  timeout 20 "$hortator" $command >printed 2>&1 </dev/null
  [ -s printed ] || [ -s plot.svg ] || wrong "hortator $command printed nothing"
  if grep -q $'[\x1b\x07]' printed; then wrong "hortator $command: control characters reach the terminal"; fi
  [ ! -e OBEYED ] || wrong "hortator $command obeyed a text of the folder"
done
for page in plot.svg page.html; do [ -s "$page" ] || wrong "$page was not written"; done
if grep -q '<script>obeyed' plot.svg page.html; then wrong 'a text of the folder became markup'; fi
echo 'texts of a run folder stay texts'
