#!/usr/bin/env bash
# The commands that a user types on the login node, from the first test to a scaling study, after building digits. They are the same on every
# machine: the site profile has modules, accounts and network settings.
set -euo pipefail
hortator config --default          # once
hortator launch -n 2 ./digits      # test it on this machine
hortator watch --once runs/digits  # loss, rate, time left, checkpoints, slow ranks; without --once it updates until the run ends
hortator plot runs/digits -o digits.svg
hortator checkpoint verify runs/digits/checkpoints/checkpoint_2
hortator job --nodes 4 --ranks-per-node 4 --time 02:00:00 --submit -- ./digits
hortator scale strong --nodes 1,2,4,8 --ranks-per-node 4 --time 00:20:00 --submit -- ./digits
# After the last job has ended, read runs/scale/report.md, and
#   hortator plot runs/scale -o scaling.svg
