"""What the comparisons with torch.distributed over gloo share: a transformer layer, ranks on this machine, and the alternating measurement."""
import json
import os
import socket
import statistics
import subprocess
import sys
import time

os.environ['OMP_NUM_THREADS'] = os.environ['MKL_NUM_THREADS'] = '1'


def make_block(torch, width, heads):
    """A layer as `hortator bench` has it."""
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            y = self.norm_1(x)
            # After DTensor's parallelize_module, a rank's queries are a local tensor of its heads: -1 counts them.
            q, k, v = (part(y).unflatten(-1, (-1, width // heads)).transpose(1, 2) for part in (self.q, self.k, self.v))
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).flatten(-2))
            return x + self.down(functional.gelu(self.up(self.norm_2(x)), approximate='tanh'))

    return Block


def join(torch, dist, rank, ranks):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR='127.0.0.1', RANK=str(rank), WORLD_SIZE=str(ranks))
    dist.init_process_group('gloo')


def time_steps(dist, step, steps):
    """Prints the mean time of a step, on rank 0."""
    for _ in range(3):
        step()
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(steps):
        step()
    dist.barrier()
    if dist.get_rank() == 0:
        print(json.dumps({'median_s': (time.perf_counter() - begin) / steps}), flush=True)


def run(command, ranks):
    """Starts a script once for each rank; returns the seconds that rank 0 prints."""
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        environment = os.environ | {'MASTER_PORT': str(free.getsockname()[1])}
    started = [subprocess.Popen([sys.executable] + command + ['--rank', str(rank)], env=environment, stdout=subprocess.PIPE, text=True) for rank in range(ranks)]
    outputs = [rank.communicate()[0] for rank in started]
    if any(rank.returncode for rank in started):
        sys.exit('a rank of torch.distributed failed')
    return json.loads(outputs[0].splitlines()[-1])['median_s']


def bench(options, arguments):
    """The seconds of a step of `hortator bench`."""
    command = [options.hortator, 'launch', '-n', str(options.ranks), options.hortator, 'bench'] + arguments + ['--json', '--blocks', '3', '--steps', str(options.steps)]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return json.loads([line for line in output.splitlines() if line.startswith('{')][-1])['median_s']


def compare(ours, theirs, rounds, name):
    """Measures both in turn, and prints medians and ratios."""
    theirs_and_ours = [(theirs(), ours()) for _ in range(rounds)]
    ratios = [other / own for other, own in theirs_and_ours]
    other, own = (1e3 * statistics.median(times) for times in zip(*theirs_and_ours))
    print(f'Hortator {own:.1f} ms, {name} {other:.1f} ms a step, {statistics.median(ratios):.2f} times as long (from {min(ratios):.2f} to {max(ratios):.2f})')
