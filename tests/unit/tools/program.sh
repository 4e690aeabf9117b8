#!/usr/bin/env bash
# The hortator command as users call it: program.sh HORTATOR CMAKE MPI. Prints each failure and exits with 1.
set -u
hortator=$1
cmake=$2
mpi=$3
source_dir=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/unit/tools/support.sh
. "$(dirname "$0")/support.sh"

program() { printf '#!/bin/sh\n%s\n' "$2" >"$1"; chmod +x "$1"; }
# shellcheck disable=SC2016
program show 'echo "rank:$# $1|$2|$3"'
program fail 'exit 7'
touch plain

# The command itself
run --version; code_is 0; out_has 'hortator 0.'
run --help; code_is 0; out_has 'launch'; out_has 'env'; out_has 'bench'
run; code_is 2; err_has 'usage: hortator VERB'
run lanch; code_is 2; err_has "Unknown verb 'lanch'; did you mean 'launch'?"
run --versoin; code_is 2; err_has "did you mean '--version'?"
run --help
verbs=$(sed -n 's/^  \([a-z-]*\)  .*/\1/p' out)
[ "$(wc -w <<<"$verbs")" -ge 14 ] || wrong 'not all verbs are listed'
for verb in $verbs; do
  run "$verb" --help; code_is 0; out_has "usage: hortator $verb"; out_has '--help'; out_has 'exit code'
  grep -qE "^  .*hortator $verb" out || wrong 'there is no example'
done
for verb in 'bench step' 'checkpoint list' 'scale strong'; do
  # shellcheck disable=SC2086
  run $verb --help; code_is 0; out_has 'usage: hortator'; out_has '--help'
done

# launch: errors
run launch -n 2; code_is 2; err_has 'The program is missing'
run launch ./show; code_is 2; err_has 'The number of ranks is missing'
for ranks in 0 -1 two 1.5 99999999999999; do
  run launch --ranks="$ranks" ./show; code_is 2; err_has "--ranks: expected a whole number from 1, got '$ranks'"
done
run launch -n 2 --dryrun ./show; code_is 2; err_has "did you mean '--dry-run'?"
run launch -n 2 ./absent; code_is 2; err_has "No program './absent'"
run launch -n 2 absent; code_is 2; err_has "No program 'absent' on PATH"
run launch -n 2 show; code_is 2; err_has "did you mean './show'?"
run launch -n 2 ./plain; code_is 2; err_has "'./plain' is not an executable file"
run launch -n 2 --launcher ./absent ./show; code_is 2; err_has "--launcher: no program './absent'"
SLURM_JOB_ID=1 PATH=/nowhere run launch -n 2 ./show; code_is 1; err_has 'No srun on PATH'

# launch --dry-run: an mpirun and an srun that only print their version
mkdir fakes
program fakes/mpirun 'echo "mpirun (Open MPI) 4.1.4"'
program fakes/srun 'echo "pmix pmi2"'
ln -s /bin/sh fakes/sh
export HORTATOR_LAUNCHER=mpirun
if [ "$mpi" = 'Open MPI' ]; then pmi=pmix; else pmi=pmi2; fi
PATH=$work/fakes run launch -n 1000000 --dry-run ./show --dry-run 'a b'; code_is 0
out_has 'mpirun -n 1000000 '; out_has "--map-by :OVERSUBSCRIBE --bind-to none ./show --dry-run 'a b'"
SLURM_JOB_ID=1 PATH=$work/fakes run launch -n 64 --dry-run ./show -n 3; code_is 0
out_is "srun --mpi=$pmi --kill-on-bad-exit=1 -n 64 --export=ALL ./show -n 3"
mkdir unlike
# shellcheck disable=SC2016
program unlike/srun '[ "$1" != --mpi=list ] || echo "MPI plugin types are... none pmi2" >&2'
if [ "$mpi" = 'Open MPI' ]; then pmi2='mpirun -n 8 *--map-by ppr:4:node '; else pmi2='srun --mpi=pmi2 '; fi
PATH=$work/unlike:$work/fakes SLURM_JOB_ID=1 run launch -n 8 --nodes 2 --ranks-per-node 4 --dry-run ./show; code_is 0
# shellcheck disable=SC2053
[[ $out == $pmi2*./show ]] || wrong 'Open MPI knows no pmi2, so that mpirun is to start the ranks; MPICH does'
SLURM_JOB_ID=1 SLURM_CPUS_PER_TASK=6 PATH=$work/fakes run launch -n 64 --dry-run ./show; out_has '--cpus-per-task=6'

OMP_NUM_THREADS=1 PATH=$work/fakes run launch -n 2 --mixed-precision bf16 --debug --dry-run ./show; out_has 'env HORTATOR_MIXED_PRECISION=bf16 HORTATOR_DEBUG=1 ./show'

# How OpenMP threads wait, unless the user or a scheduler has decided
unset OMP_WAIT_POLICY GOMP_SPINCOUNT KMP_BLOCKTIME
OMP_NUM_THREADS=1 PATH=$work/fakes run launch -n 2 --dry-run ./show; out_has ' ./show'; [[ $out != *env* ]] || wrong 'one thread never waits'
OMP_NUM_THREADS=4096,2 PATH=$work/fakes run launch -n 64 --dry-run ./show; out_has 'env OMP_WAIT_POLICY=passive ./show'
OMP_WAIT_POLICY=active PATH=$work/fakes run launch -n 64 --threads 4096 --dry-run ./show; out_has 'env OMP_NUM_THREADS=4096 ./show'
SLURM_JOB_ID=1 OMP_NUM_THREADS=4096 PATH=$work/fakes run launch -n 64 --dry-run ./show; [[ $out != *passive* ]] || wrong 'in a job, threads spin'

# With several MPIs on a machine, the mpirun of the MPI that Hortator was built with starts the ranks: the one on PATH if it matches,
# else the one found at build time. --launcher and HORTATOR_LAUNCHER override both.
unset HORTATOR_LAUNCHER
mkdir theirs ours
if [ "$mpi" = 'Open MPI' ]; then foreign='HYDRA build details:' variable=OMPI_COMM_WORLD_SIZE; else foreign='mpirun (Open MPI) 4.1.4' variable=PMI_SIZE; fi
# a build for several MPIs takes the mpirun of each
[ ! -d "${hortator%/bin/hortator}/lib/hortator" ] || foreign='mpirun (Open MPI) 3.1.6'
program theirs/mpirun "[ \$1 = --version ] && echo '$foreign' && exit; echo stranger; exit 3"
ln -s mpirun theirs/mpiexec
# shellcheck disable=SC2016
program ours/mpirun '[ $1 = --version ] && echo "mpirun of the site" && exit; echo friend'
program world "echo \"world:\$$variable\""
PATH=$work/theirs:$PATH run launch -n 2 ./world; code_is 0
[ "$(grep -ac '^world:2$' out)" = 2 ] || wrong 'two ranks of our own MPI were expected'
PATH=$work/theirs:$PATH run launch -n 2 "$hortator" doctor --json .; out_has '"ranks":2'
PATH=$work/ours:$PATH run launch -n 2 ./world; code_is 0; out_is friend
PATH=/nowhere run launch -n 2 --dry-run ./world; code_is 0; [[ $out == /*/mpi[er]*' -n 2 '* ]] || wrong 'the mpirun of the build was expected'
PATH=$work/theirs:$PATH run launch -n 2 --launcher mpirun ./world; code_is 3; out_is stranger
HORTATOR_LAUNCHER=$work/ours/mpirun run launch -n 2 ./world; code_is 0; out_is friend

export HORTATOR_LAUNCHER=mpirun
run launch --num_processes 2 --multi_gpu --mixed_precision bf16 --dry-run ./show; code_is 0
out_has 'mpirun -n 2 '; out_has 'HORTATOR_MIXED_PRECISION=bf16'; err_has '--multi_gpu has no effect'
run launch -np 2 --dry-run ./show; code_is 0; out_has 'mpirun -n 2 '
run launch -n 2 --json ./show; code_is 0; out_has '"schema_version": 1'; out_has '"ranks": 2'
run launch --launcher-option '--mca btl self' -n 2 --dry-run ./show; code_is 0; out_has ' --mca btl self '
run help launch; code_is 0; out_has 'usage: hortator launch'
run help; code_is 0; out_has 'usage: hortator VERB'
run help lanch; code_is 2; err_has "did you mean 'launch'?"
run foo; code_is 2; [[ $err != *'did you mean'* ]] || wrong 'foo is not near to any verb'
run launch -n 2 --nodes 3 --dry-run ./show; code_is 2; err_has 'too few'

# config: the priority of the sources
explained() { run config --explain; [[ $(grep "^$1:" out) == *"$2"*"# $3" ]] || wrong "$1 should be $2 by $3"; }
PATH=$work/fakes run config --default; code_is 0; out_has "written: $work/.config/hortator/config.yaml"
run config --default; code_is 2; err_has 'already exists'
# Settings that programs choose in their code are left to them.
! grep -q accumulation "$work/.config/hortator/config.yaml" || wrong 'config --default outranks the programs'
explained mixed_precision no "$work/.config/hortator/config.yaml:2"
echo 'mixed_precision: fp16' >hortator.yaml
explained mixed_precision fp16 hortator.yaml:1
HORTATOR_MIXED_PRECISION=bf16 explained mixed_precision bf16 HORTATOR_MIXED_PRECISION
explained warning_seconds 120 built-in
run config --show --json; code_is 0; out_has '"schema_version": 1'; out_has '"origin": "built-in"'
run config validate hortator.yaml --json; code_is 0; out_has '"is_valid": true'
mkdir -p .cache/huggingface/accelerate
printf '%s\n' 'compute_environment: LOCAL_MACHINE' 'distributed_type: MULTI_CPU' 'num_processes: 3' >.cache/huggingface/accelerate/default_config.yaml
run config --show; [[ $out != *'ranks: 3'* ]] || wrong 'a file of ours outranks that of Accelerate'
rm -r hortator.yaml .config
explained ranks 3 "$work/.cache/huggingface/accelerate/default_config.yaml:3"
PATH=$work/fakes run launch --dry-run ./show; out_has 'mpirun -n 3 '
run config validate .cache/huggingface/accelerate/default_config.yaml; code_is 0; out_has 'num_processes        honoured'
printf '%s\n' 'compute_environment: LOCAL_MACHINE' 'distributed_type: XLA' >tpu.yaml
run config validate tpu.yaml; code_is 2; out_has 'refused'; err_has 'tpu.yaml:2: distributed_type'
rm -r .cache
printf '\nnum_proceses: 2\n' >hortator.yaml
run launch ./show; code_is 2; err_has "hortator.yaml:2: unknown key 'num_proceses'; did you mean 'num_processes'?"
run config validate hortator.yaml --json; code_is 2; out_has '"is_valid": false'; out_has 'num_proceses'
rm hortator.yaml
run config validate absent.yaml; code_is 2; err_has 'cannot be read'
run config validate a.yaml b.yaml; code_is 2; err_has "Unexpected argument 'b.yaml'"
run config show; code_is 2; err_has "did you mean '--show'?"
run config shou; code_is 2; err_has 'valid: hortator config validate'
run config --show --config_file "$source_dir/../../../share/sites/lumi-c.yaml"; code_is 0; out_has 'scheduler: slurm'
# a file of Accelerate that names one of DeepSpeed, beside it; a test with it; an update keeps the other lines
mkdir settings
printf '%s\n' 'distributed_type: DEEPSPEED' 'num_processes: 2' 'deepspeed_config: {zero_stage: 3}' >settings/stage.yaml
PATH=$work/fakes run launch --config-file settings/stage.yaml --use_deepspeed --dry-run ./show; code_is 0; out_has 'HORTATOR_ZERO_STAGE=3'
PATH=$work/fakes run launch --config-file settings/stage.yaml --use_deepspeed --zero_stage 1 --dry-run ./show; code_is 0; out_has 'HORTATOR_ZERO_STAGE=1'
printf '%s\n' 'distributed_type: DEEPSPEED' 'num_processes: 2' 'deepspeed_config: {deepspeed_config_file: ds.json}' >settings/accelerate.yaml
echo '{"zero_optimization": {"stage": 1}, "gradient_clipping": 0.5}' >settings/ds.json
PATH=$work/fakes run launch --config-file settings/accelerate.yaml --dry-run ./show; code_is 0
out_has 'HORTATOR_ZERO_STAGE=1 HORTATOR_GRADIENT_CLIPPING=0.5'; out_has "HORTATOR_DEEPSPEED_CONFIG=$work/settings/ds.json"
rm settings/ds.json
run launch --config-file settings/accelerate.yaml --dry-run ./show; code_is 2; err_has "'ds.json' cannot be read"
printf '%s\n' 'ranks: 3  # mine' 'models:' '  net: {type: mlp}' 'account: abc' >settings/own.yaml
PATH=$work/fakes run config update settings/own.yaml --default; code_is 0; out_has 'updated: settings/own.yaml'
[ "$(cat settings/own.yaml)" = $'ranks: 3  # mine\nmodels:\n  net: {type: mlp}\naccount: abc\nmixed_precision: no' ] || wrong 'config update changed other lines'
run config update settings/accelerate.yaml; code_is 2; err_has 'is a file of Accelerate'
rm -r settings
run job --site polariz -n 1 -- ./show; code_is 2; err_has "did you mean 'polaris'?"

# checkpoint: imports weights of PyTorch; two ranks export them; the weights are unchanged
pickles=$source_dir/../formats/pickles
run checkpoint ls imported; code_is 2; err_has 'hortator checkpoint list'
run checkpoint inspect imported; code_is 2; err_has 'hortator checkpoint show'
run checkpoint import "$pickles/shapes.pt" imported; code_is 0; out_has 'imported: 11 tensors of 260 B'
run checkpoint list imported --json; code_is 0; out_has '"schema_version": 1'; out_has '"state": "complete"'
run checkpoint show imported --json; code_is 0; out_has '"tensors"'
run checkpoint verify imported --json; code_is 0; out_has '"is_intact": true'
run checkpoint diff imported imported --json; code_is 0; out_has '"is_same": true'
run launch -n 2 "$hortator" checkpoint export imported out.safetensors; code_is 0; out_has 'out.safetensors: 11 tensors'
run checkpoint diff out.safetensors "$pickles/shapes.pt"; code_is 0; out_has '0 of 11 tensors that both have differ'
run checkpoint diff imported "$pickles/floats.pt"; code_is 1; out_has '+ float32  float32 [2, 3]'
run checkpoint diff imported absent.pt; code_is 2; err_has 'absent.pt'
distributed=$source_dir/../weights/distributed
run checkpoint merge "$distributed/fsdp" merged.safetensors; code_is 0; out_has 'merged.safetensors: 10 tensors'
run checkpoint diff merged.safetensors "$distributed/fsdp.safetensors"; code_is 0; out_has '0 of 10 tensors that both have differ'
run checkpoint merge "$distributed/parts" parts.pt; code_is 0; out_has 'left out: 1 value'
run checkpoint merge "$distributed/fsdp"; code_is 2; err_has 'hortator checkpoint merge FOLDER'
deepspeed=$source_dir/../accelerator/interop/accelerate/deepspeed
run launch -n 2 "$hortator" checkpoint merge "$deepspeed/stage3" zero.safetensors; code_is 0; out_has 'zero.safetensors: 10 tensors'
run checkpoint diff zero.safetensors "$deepspeed/stage3/pytorch_model"; code_is 0; out_has '0 of 10 tensors that both have differ'
run checkpoint export zero.safetensors --to accelerate out; code_is 2; err_has 'is not a checkpoint of save_state'
run checkpoint export imported out.onnx; code_is 2; err_has 'Unknown file format of'

# completion
run completion; code_is 0
run completion bash; code_is 0; out_has '_hortator()'
run completion zsh; code_is 2; err_has "Expected bash, got 'zsh'"
completed=$(PATH=$(dirname "$hortator"):$PATH bash -c 'eval "$(hortator completion)"; COMP_WORDS=(hortator launch --dry) COMP_CWORD=2; _hortator; echo "${COMPREPLY[*]}"')
[ "$completed" = --dry-run ] || wrong "completion of --dry gives '$completed'"
completed=$(PATH=$(dirname "$hortator"):$PATH bash -c 'eval "$(hortator completion)"; COMP_WORDS=(hortator launch --int) COMP_CWORD=2; _hortator; echo "${COMPREPLY[*]}"')
[ "$completed" = --int8-gathers ] || wrong "completion of --int gives '$completed'"
completed=$(PATH=$(dirname "$hortator"):$PATH bash -c 'eval "$(hortator completion)"; COMP_WORDS=(hortator job --part) COMP_CWORD=2; _hortator; echo "${COMPREPLY[*]}"')
[ "$completed" = --partition ] || wrong "completion of --part gives '$completed'"
completed=$(PATH=$(dirname "$hortator"):$PATH bash -c 'eval "$(hortator completion)"; COMP_WORDS=(hortator la) COMP_CWORD=1; _hortator; echo "${COMPREPLY[*]}"')
[ "$completed" = launch ] || wrong "completion of la gives '$completed'"

# the man page documents every verb and every flag
man=$source_dir/../../../share/man/hortator.1
man_text=$(sed 's/\\-/-/g' "$man")
for verb in config launch job sweep new doctor test watch plot scale env checkpoint bench completion; do grep -q "^\.SS \(hortator \)\?$verb" "$man" || wrong "the man page does not have $verb"; done
for verb in config launch job sweep doctor test watch plot 'scale strong' env 'checkpoint diff' 'checkpoint export' 'checkpoint import' \
  estimate-memory tokenize bench; do
  # shellcheck disable=SC2086
  for flag in $("$hortator" $verb --help | sed 's/ -- .*//' | grep -oE -- '--[a-z][a-z0-9_-]+' | sort -u); do
    grep -q -- "$flag\b" <<<"$man_text" || wrong "the man page does not have $flag of $verb"
  done
done

# and every variable that has no key, except internal ones and options of CMake; config --help lists those of the keys
sources=$source_dir/../../../src
run config --help; code_is 0
for variable in $(grep -rhoE --exclude-dir=fortran '"HORTATOR_[A-Z_]+[A-Z]"' "$sources" | tr -d '"' | sort -u); do
  [[ $variable != HORTATOR_LAUNCH_CALL && $variable != HORTATOR_WITH_* ]] || continue
  if grep -q "($variable)\$" out; then continue; fi
  grep -q "$variable" "$man" || wrong "$variable is not documented"
  grep -q "\"${variable#HORTATOR_}\"" "$sources/core/environment/known_variables.cpp" || wrong "$variable would be reported as misspelt"
done

# a variable that the table of options reads is named nowhere else
while read -r name; do
  if grep -rq "\"HORTATOR_${name^^}\"" "$sources"; then wrong "HORTATOR_${name^^} is read beside the table of options"; fi
done < <(sed -n 's/^LAUNCH_OPTION([a-z0-9_.]*, [a-z]*, table, \([a-z0-9_]*\),.*/\1/p' "$sources/core/environment/program_options.inc")

# the command itself links neither LibTorch nor MPI
if command -v ldd >/dev/null && grep -qE 'libtorch|libc10|libmpi' <<<"$(ldd "$hortator")"; then wrong 'the command links LibTorch or MPI'; fi

# launch for real
unset HORTATOR_LAUNCHER
run launch -n 2 ./show -n 'a b' --help; code_is 0
[ "$(grep -ac '^rank:3 -n|a b|--help$' out)" = 2 ] || wrong 'two ranks with three arguments each were expected'
run launch -n 1 ./fail; code_is 7
run launch -n 2 ./fail; code_is 7
# signals are forwarded, and a failed run is restarted
# shellcheck disable=SC2016
program trapped 'trap "echo told; exit 0" USR1; echo runs >"$HORTATOR_RUN_NOTE"; kill -USR1 $(cat "$PWD/pid"); i=0; while [ $i -lt 100 ]; do sleep 0.1; i=$((i + 1)); done; exit 5'
sh -c 'echo $$ >pid; exec "$0" launch -n 1 ./trapped' "$hortator" >out 2>err || wrong 'SIGUSR1 was not forwarded'
grep -q told out || wrong 'SIGUSR1 did not reach the rank'
# shellcheck disable=SC2016
program third 'echo run >>runs.txt; [ "$(wc -l <runs.txt)" -ge 3 ] || exit 3'
mkdir kept
run launch -n 1 --max-restarts 2 --memory-folder kept ./third; code_is 0; err_has 'restarting it from its newest checkpoint'
rm runs.txt; run launch -n 1 --max-restarts 1 --memory-folder kept ./third; code_is 3
# checkpoints in memory: a folder for the time of the launch, which programs find
# shellcheck disable=SC2016
program keeping 'echo "every $HORTATOR_MEMORY_CHECKPOINT"; stat -c "mode %a" "$HORTATOR_KEPT_MEMORY"'
run launch -n 1 --max-restarts 1 --memory-folder kept --memory-checkpoint 5 ./keeping; code_is 0; out_has 'every 5'; out_has 'mode 700'
[ -z "$(ls kept)" ] || wrong 'the folder for checkpoints in memory is left'
run launch -n 1 --memory-checkpoint 5 ./keeping; code_is 2; err_has '--memory-checkpoint without --max-restarts'
run launch -n 1 --max-restarts 1 --memory-checkpoint 0 ./keeping; code_is 2; err_has "--memory-checkpoint"; err_has "'0'"
run launch -n 1 --max-restarts 1 --memory-folder kept --memory-checkpoint 30s ./keeping; code_is 0; out_has 'every 30s'
run launch -n 1 --max-restarts 1 --memory-checkpoint 30x ./keeping; code_is 2; err_has "--memory-checkpoint: expected a number of steps, such as 10, or a time, such as 30s, 10min or 1h, got '30x'"
run launch -n 1 --max-restarts 1 --memory-folder missing --memory-checkpoint 5 ./keeping; code_is 1; err_has 'No such file or directory; name another folder with --memory-folder'
run launch -n 1 --max-restarts 1 --memory-folder missing ./show; code_is 0
run job --scheduler slurm -n 1 --memory-checkpoint 5 --dry-run ./show; code_is 2; err_has '--memory-checkpoint does not work with'
run keep; code_is 2; err_has 'usage: hortator keep FOLDER'
# a command for each complete checkpoint: no shell reads the names of folders, and its failures end nothing
# shellcheck disable=SC2016
{
  program saves 'IFS=,; for name in $1; do mkdir -p "$name"; printf "%s\0" "$PWD/$name" >>"$HORTATOR_CHECKPOINT_NOTE"; done; printf "$PWD/torn" >>"$HORTATOR_CHECKPOINT_NOTE"; mkdir -p torn; sleep "${2:-0}"'
  program archive 'printf "%s|" "$@" >>archived; echo >>archived; [ ! -e broken ] || exit 9'
  program slow 'echo begun >>archived; exec sleep 30'
}
# shellcheck disable=SC2016
run launch -n 1 --on-checkpoint './archive {} "to {}"' ./saves 'a b,$(touch owned);touch owned'; code_is 0
[ "$(cat archived)" = "$(printf '%s|to %s|\n' "$PWD/a b" "$PWD/a b" "$PWD/\$(touch owned);touch owned" "$PWD/\$(touch owned);touch owned")" ] || wrong "the command got $(cat archived)"
[ ! -e owned ] || wrong 'a name was run'
[ -z "$(find . -maxdepth 1 -name '.hortator-checkpoints-*')" ] || wrong 'the note of checkpoints is left'
rm archived; touch broken; run launch -n 1 --on-checkpoint ./archive ./saves a,b; code_is 0; err_has "--on-checkpoint: the command ended with exit code 9 for $PWD/b"
[ "$(wc -l <archived)" = 2 ] || wrong 'a command that fails does not keep the next from its turn'
rm archived broken; run launch -n 1 --on-checkpoint ./archive ./fail; code_is 7
[ ! -e archived ] || wrong 'a command ran without a checkpoint'
run launch -n 1 --on-checkpoint ./missing ./show; code_is 2; err_has "No program './missing'"
run launch -n 1 --on-checkpoint "./archive '{}" ./show; code_is 2; err_has "--on-checkpoint: a quote or a backslash is left open"
# the launch waits for the command, unless it is asked to end
rm -f archived
"$hortator" launch -n 1 --on-checkpoint ./slow ./saves a,b >out 2>err &
launcher=$!
for _ in $(seq 300); do [ ! -e archived ] || break; sleep 0.1; done
kill -0 "$launcher" || wrong 'the launch does not wait for the command'
sleep 2 # the program has ended by then
kill -TERM "$launcher"
wait "$launcher" || wrong "the run has finished: 0 was expected, got $?"
grep -q 'SIGTERM ends the command for .*/a, and 1 later checkpoint get none' err || wrong "not reported: $(cat err)"
# a note that a killed launch of the same number has left counts for nothing
code=0; bash -c 'printf "old\n\nstopped\n" >.hortator-run-$$; exec "$0" launch -n 1 /bin/true' "$hortator" 2>err || code=$?
[ "$code" = 0 ] || wrong "a note of a killed launch: $code"
[ -z "$(compgen -G '.hortator-run-*')" ] || wrong 'a note is left'
run launch -n 2 --log-dir logs ./show a b c; code_is 0
[ "$(grep -rl 'rank:3' logs | wc -l)" = 2 ] || wrong 'a file of output for each rank was expected'

# env
run env; code_is 0; out_has 'LibTorch'; out_has libmpi
SLURM_JWT=s3cr3t run env --json; code_is 0
[[ $out != *s3cr3t* ]] || wrong 'a secret is shown'
"$cmake" -DJSON="$out" -P "$source_dir/json_field.cmake" hortator version >/dev/null 2>&1 || wrong 'no JSON with hortator.version'
run env --jsn; code_is 2; err_has "did you mean '--json'?"

# bench
run bench; code_is 2; err_has 'The bench verb is missing'
run bench setp; code_is 2; err_has "Unknown bench verb 'setp'; did you mean 'step'?"
run bench step --blocks 0; code_is 2; err_has "--blocks: expected a whole number from 1, got '0'"
run bench step --blocks 2 --steps 3; code_is 0; out_has 'ratio'
run bench loader --case row --blocks 1 --steps 1; code_is 2; err_has "did you mean 'rows'?"
run bench paging --case codl; code_is 2; err_has "did you mean 'cold'?"
run bench paging --json --size 40MB --blocks 1; code_is 0
for case in operator-untouched operator-touched cached cached-read half-resident cold dispatch-half dispatch-half-cold; do out_has "\"case\":\"$case\""; done
compgen -G 'hortator-bench-*' >/dev/null && wrong 'bench paging leaves its file behind'
run bench record --json --blocks 1; code_is 0; out_has '"name":"record"'
run bench reproducible --case replicate --json --blocks 1 --steps 1; code_is 0; out_has '"name":"reproducible_replicate"'
run bench memory-checkpoints --json --blocks 1 --steps 10; code_is 0; out_has '"name":"memory-checkpoints"'
run bench ema --json --blocks 1 --steps 1; code_is 0; out_has '"name":"ema"'
run bench zero --case mlp-comm --json --blocks 1 --steps 1; code_is 0; out_has '"stage":3'; out_has '"offload":"disk"'
run bench gathers; code_is 2; err_has 'hortator bench gathers runs on one node'
run bench partner-load; code_is 2; err_has 'hortator bench partner-load runs on one node'
run bench tensor --json --blocks 1; code_is 0; out_has '"case":"attention"'
run bench tensor --case step; code_is 2; err_has 'hortator launch -n 2 hortator bench tensor --case step'
run launch -n 2 "$hortator" bench tensor --case operators; code_is 2; err_has 'it times operators that send nothing'
run launch -n 2 "$hortator" bench tensor --json --blocks 1 --steps 1; code_is 0; out_has '"name":"tensor_step"'; out_has '"name":"tensor_sequence_step"'
for launcher in '' "$hortator launch -n 2"; do
  code=0
  # shellcheck disable=SC2086
  $launcher "$hortator" bench loader --json --case rows --case samples --blocks 1 --steps 1 >out 2>err || code=$?
  out=$(<out) err=$(<err) call="$launcher hortator bench loader --json"
  code_is 0; out_has '"samples_per_s"'; out_has '"case":"rows"'; out_has '"case":"samples"'
  [ "$(wc -l <out)" = 4 ] || wrong 'four lines were expected: two ways to read, two references'
done
for launcher in '' "$hortator launch -n 2"; do
  code=0
  # shellcheck disable=SC2086
  $launcher "$hortator" bench step --json --blocks 2 --steps 3 >out 2>err || code=$?
  out=$(<out) err=$(<err) call="$launcher hortator bench step --json"
  code_is 0
  [ "$(wc -l <out)" = 1 ] || wrong 'one line was expected'
  if [ -e runs ] || compgen -G 'hortator-bench*' >/dev/null; then wrong 'it leaves a run behind'; fi
  members=(name params reference median_s min_s ratio runs)
  if [ -n "$launcher" ]; then members+=(copying_s reducing_s waiting_s imbalance_s); fi
  for member in "${members[@]}"; do
    "$cmake" -DJSON="$out" -P "$source_dir/json_field.cmake" "$member" >/dev/null 2>&1 || wrong "no JSON with $member"
  done
done
collectives=(bench collectives --blocks 2 --steps 5 --size 64KiB --backend node --type float32 --reference MPI)
for case in reduce_scatter all_gather broadcast debug_mode; do collectives+=(--case "$case"); done
code=0
"$hortator" launch -n 2 "$hortator" "${collectives[@]}" >out 2>err || code=$?
out=$(<out) err=$(<err) call="hortator launch -n 2 hortator ${collectives[*]}"
code_is 0; out_has 'reduce_scatter'; out_has 'all_gather'; out_has 'broadcast'; out_has 'debug_mode'
# the next benchmark removes the folder of a killed one; folders of other processes and unclaimed folders stay
"$hortator" bench step --blocks 1000000 >/dev/null 2>&1 &
killed=$!
for _ in $(seq 200); do compgen -G 'hortator-bench-*/.claim' >/dev/null && break; sleep 0.1; done
kill -9 "$killed"; wait "$killed" 2>/dev/null
left=$(compgen -G 'hortator-bench-*') || wrong 'a killed bench was expected to leave its folder'
mkdir hortator-bench-unclaimed hortator-bench-alive hortator-bench-elsewhere
echo "$(cut -d' ' -f1,2 "$left/.claim") $$ $(awk '{print $22}' /proc/$$/stat)" >hortator-bench-alive/.claim
sed '1s/^./x/' "$left/.claim" >hortator-bench-elsewhere/.claim
run bench step --blocks 1 --steps 1; code_is 0
[ ! -e "$left" ] || wrong "$left is still there"
for kept in unclaimed alive elsewhere; do [ -d "hortator-bench-$kept" ] || wrong "hortator-bench-$kept has gone"; done
rm -r hortator-bench-*

[ "$failures" = 0 ] || { echo "$failures wrong"; exit 1; }
