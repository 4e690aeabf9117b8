# reframe -C SITE_SETTINGS.py -c share/packages/reframe/hortator_check.py -r
#
# Runs `hortator test` on the site's nodes; the time of each check is a performance variable. Set on the command line (-S) or in a derived
# class: modules, num_tasks, num_tasks_per_node, folder.
import os

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import run_before, sanity_function, variable


@rfm.simple_test
class HortatorTest(rfm.RunOnlyRegressionTest):
    descr = "checks an installation of Hortator on the nodes where it runs"
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "hortator"
    num_tasks = 2
    time_limit = "10m"
    folder = variable(str, value=".")  # on the file system to check; by default that of the stage folder
    tags = {"production", "maintenance"}

    @run_before("run")
    def choose_options(self):
        # With ReFrame's "local" scheduler the ranks run on this node, which `hortator test` refuses on a login node without --here.
        here = ["--here"] if self.current_partition.scheduler.is_local else []
        self.executable_opts = ["test", "--dir", self.folder, *here]

    @sanity_function
    def all_checks_have_passed(self):
        return sn.all([
            sn.assert_not_found(r"^FAILED", self.stdout),
            sn.assert_found(r"^(\d+) of \1 checks passed", self.stdout),
            sn.assert_found(rf"^passed\s+ranks\s.*\b{self.num_tasks} ranks?,", self.stdout),
        ])

    @run_before("performance")
    def take_times(self):
        # The checks depend on the nodes: "nccl" runs only on nodes with GPUs.
        output = os.path.join(self.stagedir, str(sn.evaluate(self.stdout)))
        names = sn.evaluate(sn.extractall(r"^passed\s+(\S.*?)\s+[0-9.]+ s  ", output, 1))
        self.perf_variables = {
            name.replace(" ", "_").replace("-", "_"): sn.make_performance_function(self.seconds_of(name), "s") for name in names}

    def seconds_of(self, name):
        return sn.extractsingle(rf"^passed\s+{name}\s+(\S+) s  ", self.stdout, 1, float)
