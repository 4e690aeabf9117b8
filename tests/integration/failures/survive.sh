#!/usr/bin/env bash
# survive.sh HORTATOR SURVIVING DRILL [N]: runs that fail and resume from checkpoints in memory. DRILL:
#   kills N    N times a random rank is killed at a random time: the losses are those of a run that was not killed, each step once
#   keeper     the keeper is killed, then a rank
#   launcher   the launcher is killed: nothing is left
#   abandoned  launcher and keeper are killed: the next launch removes what they left
#   full       the memory is too small: the run resumes from the disk
#   node       a node's memory is lost: its partner has a copy
#   copies     both copies are lost: the run resumes from the disk
#   damaged    the newest checkpoint in memory has other bytes: the run resumes from the one before
#   flipped    a node's own part in memory has other bytes: its partner's copy is loaded
#   levels     the launcher is killed, and its memory lost: the next launch resumes from the nodes' own disks
#   disk       the newest checkpoint on disk has other bytes: the run resumes from the memory
#   copying    a node is killed at several calls with which it copies its own part and its partner's
#   filled     the disk is full at a save: the run resumes from the memory
# The last two need the library of disk faults: SHIM.
set -uo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/integration/failures/leftovers.sh
. "$here/leftovers.sh"
# shellcheck source=tests/support/ranks_of.sh
. "$here/../../support/ranks_of.sh"
# shellcheck source=tests/support/surviving_run.sh
. "$here/../../support/surviving_run.sh"
hortator=$1 surviving=$2 drill=$3 times=${4:-1}
steps=60 every=3 program=$surviving
work=$(mktemp -d)
launcher='' killed=''
trap '[ -z "$launcher" ] || kill -KILL "$launcher" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
mkdir memory
export HORTATOR_MEMORY_FOLDER=$work/memory
mark_processes
RANDOM=${SEED:=$RANDOM}
echo "seed $SEED"

complain() {
  echo "failed (SEED=$SEED): $1" >&2
  tail -n 50 out err resumed.txt >&2
  exit 1
}

# launch ARGUMENT...: of the program, in the background
launch() {
  "$hortator" launch -n 2 --max-restarts 1000 --memory-checkpoint $every "$program" "$@" >>out 2>>err &
  launcher=$!
}
finish() {
  wait "$launcher" || complain "the run ended with code $?"
  launcher=
  grep -q "finished after $steps steps" out || complain 'the run has not finished'
}
keeper() { pgrep -P "$launcher" -f ' keep '; }
mpirun() { pgrep -n -P "$launcher"; } # a keeper is started before
ranks() { ranks_of "$(mpirun)" -f "$surviving"; }
steps_begun() { [ -f steps.txt ] && wc -l <steps.txt || echo 0; }
# Waits for that many more steps of the program.
have_begun() { [ "$(steps_begun)" -ge "$1" ]; }
wait_for_steps() { wait_until 'the program makes no progress' have_begun $(($(steps_begun) + $1)); }
kill_a_rank() {
  local found=() before=$killed
  until [ ${#found[@]} -gt 0 ]; do
    kill -0 "$launcher" 2>/dev/null || complain 'the launch has ended early'
    killed=$(mpirun)
    # of this process, which may still be the keeper: a second rank of the attempt before would be killed otherwise
    [ -z "$killed" ] || [ "$killed" = "$before" ] || mapfile -t found < <(ranks_of "$killed" -f "$surviving" 2>/dev/null)
  done
  kill -KILL "${found[$((RANDOM % ${#found[@]}))]}" 2>/dev/null
}
# Other bytes of the same number.
overwrite() { head -c "$(stat -c %s "$1")" /dev/zero | tr '\0' '\125' >"$1.new" && mv "$1.new" "$1"; }
# Writes `faulty`, which starts a program that finds a fault in files below FOLDER if a line of the file `faults` is left.
inject_below() { # FOLDER KIND RANK: each line of `faults` is the number of a call
  cat >faulty <<SH
#!/bin/sh
if [ "\$OMPI_COMM_WORLD_RANK" = $3 ] && [ -s faults ]; then
  export LD_PRELOAD=$SHIM FAULT_PATH=$1 FAULT_KIND=$2 FAULT_ON=1 FAULT_AT=\$(head -n 1 faults)
  sed -i 1d faults
fi
exec "$surviving" "\$@"
SH
  chmod +x faulty
  program=$work/faulty
}
nothing_is_left() {
  local left
  for _ in $(seq 100); do
    left=$(find memory -mindepth 1; marked_processes)
    [ -n "$left" ] || return 0
    sleep 0.1
  done
  complain "left behind: $left"
}
# The steps and losses are those of a run that was not killed.
same_losses() {
  local killed
  killed=$(cat loss.csv)
  mkdir reference && cd reference || exit 1
  "$hortator" launch -n 2 "$surviving" $steps >out 2>err || complain 'the run without kills has failed'
  cd .. || exit 1
  [ "$(cut -d, -f1 loss.csv)" = "$(seq $steps)" ] || complain "a step is missing or there twice: $(cut -d, -f1 loss.csv | uniq -c)"
  [ "$killed" = "$(cat reference/loss.csv)" ] || complain "the losses differ: $(diff loss.csv reference/loss.csv | head -n 6)"
}
# No restart has gone back further than to the last checkpoint in memory.
lost_few_steps() {
  local most
  most=$(awk 'NR > 1 && $1 <= last && last + 1 - $1 > most { most = last + 1 - $1 } { last = $1 } END { print most + 0 }' steps.txt)
  [ "$most" -le "$every" ] || complain "$most steps were lost at once"
}

case $drill in
  kills)
    steps=$((times * 25))
    hold_at 25
    launch $steps
    for i in $(seq "$times"); do
      # mostly in the steps, sometimes in the start
      [ $((RANDOM % 5)) -eq 0 ] || wait_for_steps 5
      sleep "0.$(printf %02d $((RANDOM % 15)))"
      kill_a_rank
      hold_at $((i * 25 + 25))
    done
    rm hold
    finish
    [ "$(grep -c 'the run ended with exit code .*; restarting it' err)" = "$times" ] || complain 'not each kill was followed by a restart'
    lost_few_steps
    same_losses
    nothing_is_left
    ;;
  keeper)
    hold_at 13
    launch $steps
    wait_for_steps 13
    kill -KILL "$(keeper)"
    kill_a_rank
    rm hold
    finish
    lost_few_steps
    same_losses
    nothing_is_left
    ;;
  launcher)
    hold_at 13
    launch $steps
    wait_for_steps 13
    [ -n "$(find memory -name 'checkpoint_*')" ] || complain 'there is no checkpoint in memory'
    [ "$(stat -c %a memory/hortator-*)" = 700 ] || complain 'other users may read the memory'
    kill -KILL "$launcher"
    wait "$launcher" 2>/dev/null
    launcher=
    nothing_is_left
    ;;
  abandoned)
    hold_at 13
    launch $steps
    wait_for_steps 13
    victim=$(keeper)
    kill -STOP "$victim"  # it would clean up between the two kills
    kill -KILL "$launcher" "$victim"
    wait "$launcher" 2>/dev/null
    [ -n "$(find memory -name 'checkpoint_*')" ] || complain 'there is no checkpoint in memory'
    until [ -z "$(marked_processes)" ]; do sleep 0.1; done
    rm -rf hold runs steps.txt loss.csv
    launch $steps
    finish
    [ "$(tail -n 1 resumed.txt)" = 0 ] || complain 'a launch has resumed from the memory of another'
    nothing_is_left
    ;;
  full)
    echo 20 >save_every
    hold_at 34
    launch $steps 5000
    wait_for_steps 34
    kill_a_rank
    rm hold
    finish
    grep -q 'No checkpoints are kept in memory from now on: A checkpoint in this node.s memory needs .* and its limit of 4.9 KiB has .* left' err || complain 'the lack of memory is not reported'
    [ "$(tail -n 1 resumed.txt)" = 20 ] || complain "resumed after step $(tail -n 1 resumed.txt), expected 20"
    same_losses
    nothing_is_left
    ;;
  node | copies)
    export HORTATOR_TEST_RANKS_A_NODE=1
    expected=33
    if [ "$drill" = copies ]; then
      echo 20 >save_every
      expected=20
    fi
    hold_at 34
    launch $steps
    wait_for_steps 34
    mapfile -t found < <(ranks)
    kill -STOP "$launcher" # no restart before the memory is lost
    kill -KILL "${found[@]}"
    rm -rf memory/*/node1
    [ "$drill" = node ] || rm -rf memory/*/node0
    rm hold
    kill -CONT "$launcher"
    finish
    [ "$(tail -n 1 resumed.txt)" = $expected ] || complain "resumed after step $(tail -n 1 resumed.txt), expected $expected"
    same_losses
    nothing_is_left
    ;;
  levels)
    export HORTATOR_LOCAL_CHECKPOINT=5 HORTATOR_LOCAL_FOLDER=$work/disks HORTATOR_TEST_RANKS_A_NODE=1
    mkdir disks disks/node0 disks/node1
    hold_at 34
    launch $steps
    wait_for_steps 34
    kill -KILL "$launcher"
    wait "$launcher" 2>/dev/null
    launcher=
    nothing_is_left
    find disks/node1 -mindepth 1 -delete # its partner has a copy
    rm hold
    launch $steps
    finish
    [ "$(tail -n 1 resumed.txt)" = 30 ] || complain "resumed after step $(tail -n 1 resumed.txt), expected 30"
    [ -z "$(find disks -name '*run*')" ] || complain "left behind: $(find disks)"
    same_losses
    nothing_is_left
    ;;
  damaged | disk | flipped)
    expected=30
    damaged='memory/*/*/checkpoint_10/state.h5' message='was skipped: .*checksum'
    if [ "$drill" = flipped ]; then
      export HORTATOR_TEST_RANKS_A_NODE=1
      damaged='memory/*/node0/*/checkpoint_10/state-0.h5' message='is damaged, and removed'
      expected=33
    fi
    if [ "$drill" = disk ]; then
      echo 17 >save_every
      damaged=runs/surviving/checkpoint/state.h5
      expected=33
    fi
    hold_at 34
    launch $steps
    wait_for_steps 34
    [ "$drill" != disk ] || until grep -qs '"updates": 34' runs/surviving/checkpoint/manifest.json; do sleep 0.1; done
    mapfile -t found < <(ranks)
    kill -STOP "$launcher" # no restart before the files are changed
    kill -KILL "${found[@]}"
    # shellcheck disable=SC2086
    overwrite $damaged
    rm hold
    kill -CONT "$launcher"
    finish
    [ "$(tail -n 1 resumed.txt)" = $expected ] || complain "resumed after step $(tail -n 1 resumed.txt), expected $expected"
    grep -q "$message" err || complain 'the damage is not reported'
    same_losses
    nothing_is_left
    ;;
  copying)
    export HORTATOR_TEST_RANKS_A_NODE=1
    calls=(2 9 20 35 44)
    printf '%s\n' "${calls[@]}" >faults
    inject_below "$work/memory" kill 1
    launch $steps
    finish
    [ ! -s faults ] || complain "not all calls were reached: $(cat faults)"
    [ "$(grep -c 'the run ended with exit code .*; restarting it' err)" = ${#calls[@]} ] || complain 'not each kill was followed by a restart'
    every=$((2 * every)) lost_few_steps # the copy that did not become whole, and the steps before it
    same_losses
    nothing_is_left
    ;;
  filled)
    echo 20 >save_every
    echo 1 >faults
    inject_below "$work/runs/surviving/checkpoint" ENOSPC 0
    launch $steps
    finish
    grep -q 'checkpoint.*No space left on device' err || complain 'the full disk is not reported'
    grep -q 'a node.s own storage was full.*restarting it' err || complain 'the run was not restarted'
    [ "$(tail -n 1 resumed.txt)" = 18 ] || complain "resumed after step $(tail -n 1 resumed.txt), expected 18"
    grep -qs '"updates": 60' runs/surviving/checkpoint/manifest.json || complain 'the disk has no checkpoint of the end'
    lost_few_steps
    same_losses
    nothing_is_left
    ;;
  *) complain "unknown drill $drill" ;;
esac
