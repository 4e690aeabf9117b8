#!/usr/bin/env bash
# From the login node, where the program digits has been built: what a user types, from the first try to a scaling study. Nothing here is
# edited for another machine: the site profile knows modules, accounts and fabric settings.
set -euo pipefail
hortator config --default          # once
hortator launch -n 2 ./digits      # try it here
hortator watch --once runs/digits  # loss, rate, time left, checkpoints, slow ranks; without --once as long as it runs
hortator plot runs/digits -o digits.svg
hortator checkpoint verify runs/digits/checkpoints/checkpoint_2
hortator job --nodes 4 --ranks-per-node 4 --time 02:00:00 --submit -- ./digits
hortator scale strong --nodes 1,2,4,8 --ranks-per-node 4 --time 00:20:00 --submit -- ./digits
# When its last job has ended: runs/scale/report.md, and
#   hortator plot runs/scale -o scaling.svg
