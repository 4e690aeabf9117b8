#include "launch/job/job.hpp"

#include <hortator/error.hpp>

#include "launch/job/directives.hpp"
#include "launch/job/job_id.hpp"
#include "launch/job/template.hpp"
#include "support/catch.hpp"

using namespace hortator::launching;
using Lines = std::vector<std::string>;

namespace {

constexpr auto slurm = Scheduler::slurm;
constexpr auto pbs = Scheduler::pbs;
constexpr auto flux = Scheduler::flux;
constexpr auto lsf = Scheduler::lsf;
constexpr auto grid_engine = Scheduler::grid_engine;

Job job(Scheduler scheduler, const Lines& given = {}) {
  Layer layer = {{"nodes", {{"2"}, "x"}}, {"ranks_per_node", {{"4"}, "x"}}};
  for (const auto& assignment : given) {
    const auto end = assignment.find('=');
    layer[assignment.substr(0, end)] = {{assignment.substr(end + 1)}, "x"};
  }
  return job_of(Settings({layer}), scheduler, "bin/train", {"--lr", "1e-3"});
}

bool has(const Lines& lines, const std::string& line) {
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

const Lines hostile = {"a b", "a\"b", "a'b", "$(touch x)", "`touch x`", "a\nb", "a;b", "a#b", "a\\b", "a>b", "ä"};

}  // namespace

TEST_CASE("an expedited requeue of Slurm 25.11 comes after the plain one, which it replaces") {
  const auto lines = directives(job(slurm, {"directives=--requeue=expedite"}));
  const auto expedited = std::ranges::find(lines, "--requeue=expedite");
  CHECK(std::ranges::find(lines, "--requeue") < expedited);
  CHECK(expedited != lines.end());
}

TEST_CASE("the directives of Slurm") {
  CHECK(directives(job(slurm)) == Lines{"--job-name=train", "--nodes=2", "--ntasks-per-node=4", "--time=01:00:00",
                                        "--signal=B:USR1@120", "--requeue", "--open-mode=append",
                                        "--output=%x-%j.out"});
  const auto lines = directives(
      job(slurm, {"account=a1", "queue=gpu", "qos=high", "constraint=(a100|h100)&ib", "reservation=r",
                  "licenses=scratch:2", "mail=u@x.org", "gpus_per_node=4", "cpus_per_node=64", "spare_nodes=1",
                  "time=1-00:00:00", "max_restarts=2", "warning_seconds=300", "directives=--hint=nomultithread"}));
  for (const auto* line :
       {"--account=a1", "--partition=gpu", "--qos=high", "--constraint=(a100|h100)&ib", "--reservation=r",
        "--licenses=scratch:2", "--mail-user=u@x.org", "--gpus-per-node=4", "--cpus-per-task=16", "--nodes=3",
        "--time=24:00:00", "--no-kill", "--signal=B:USR1@300", "--hint=nomultithread"}) {
    CHECK(has(lines, line));
  }
}

TEST_CASE("the directives of PBS") {
  CHECK(directives(job(
            pbs, {"gpus_per_node=4", "threads=8", "queue=q", "account=a", "filesystems=home:eagle", "mail=u@x.org"})) ==
        Lines{"-N train", "-l select=2:ncpus=32:mpiprocs=4:ompthreads=8:ngpus=4", "-l walltime=01:00:00", "-j oe",
              "-k doe", "-l place=scatter", "-A a", "-q q", "-l filesystems=home:eagle", "-m ae", "-M u@x.org"});
  CHECK(has(directives(job(pbs, {"cpus_per_node=64"})), "-l select=2:ncpus=64:mpiprocs=4:ompthreads=16"));
  CHECK(has(directives(job(pbs)), "-l select=2:ncpus=4:mpiprocs=4:ompthreads=1"));
  CHECK_FALSE(has(directives(job(pbs, {"nodes=1"})), "-l place=scatter"));
  const auto with_spare = directives(job(pbs, {"nodes=1", "spare_nodes=1"}));
  CHECK(has(with_spare, "-l select=2:ncpus=4:mpiprocs=4:ompthreads=1"));
  CHECK(has(with_spare, "-l place=scatter"));
  CHECK_FALSE(has(directives(job(pbs, {"directives=-l place=scatter:excl"})), "-l place=scatter"));
  CHECK_THROWS_WITH(directives(job(pbs, {"directives=--mem=4G"})), ContainsSubstring("option of Slurm"));
  for (const auto* setting : {"qos=x", "constraint=x", "licenses=x", "reservation=x"}) {
    CHECK_THROWS_AS(directives(job(pbs, {setting})), hortator::UsageError);
  }
}

TEST_CASE("the directives of Flux") {
  CHECK(directives(job(flux)) ==
        Lines{"--job-name=train", "--nodes=2", "--nslots=2", "--time-limit=3600s", "--exclusive"});
  CHECK(directives(job(flux, {"threads=8", "gpus_per_node=4", "queue=q", "account=a", "constraint=amd&big",
                              "dependency=afterany:f2x", "directives=--urgency=20"})) ==
        Lines{"--job-name=train", "--nodes=2", "--nslots=2", "--time-limit=3600s", "--cores-per-slot=32",
              "--gpus-per-slot=4", "--dependency=afterany:f2x", "--bank=a", "--queue=q", "--requires=amd&big",
              "--urgency=20"});
  for (const auto* setting : {"qos=x", "reservation=x", "licenses=x", "mem=4G", "mail=u@x.org", "array=0-3",
                              "spare_nodes=1", "gpus_per_node=a100:4"}) {
    CHECK_THROWS_AS(directives(job(flux, {setting})), hortator::UsageError);
  }
}

TEST_CASE("the directives of LSF") {
  CHECK(directives(job(lsf)) ==
        Lines{"-J train", "-n 8", "-R span[ptile=4]", "-W 1:00", "-L /bin/bash", "-o train-%J.out"});
  const auto lines = directives(
      job(lsf, {"threads=8", "gpus_per_node=4", "mem_per_cpu=2G", "exclusive=true", "time=00:10:01",
                "dependency=afternotok:12", "reservation=r", "mail=u@x.org", "mail_type=BEGIN", "array=0-9%2"}));
  for (const auto* line : {"-J train[1-10]%2", "-n 64", "-R span[ptile=32]", "-W 0:11", "-gpu num=4",
                           "-R rusage[mem=65536MB/host]", "-x", "-w exit(12)", "-U r", "-B", "-u u@x.org"}) {
    CHECK(has(lines, line));
  }
  CHECK_FALSE(has(lines, "-N"));
  for (const auto* setting : {"qos=x", "constraint=x", "licenses=x", "filesystems=x", "dependency=singleton",
                              "array=1-3", "array=0,2", "spare_nodes=1", "directives=-J x[1-4]"}) {
    CHECK_THROWS_AS(directives(job(lsf, {setting})), hortator::UsageError);
  }
  CHECK_THROWS_WITH(directives(job(lsf, {"directives=--mem=4G"})), ContainsSubstring("this job is for LSF"));
}

TEST_CASE("the directives of Grid Engine") {
  CHECK(directives(job(grid_engine, {"parallel_environment=mpi"})) ==
        Lines{"-N train", "-S /bin/bash", "-cwd", "-r n", "-l h_rt=01:00:00", "-pe mpi 8", "-j y"});
  const auto lines = directives(
      job(grid_engine, {"parallel_environment=mpi-8", "threads=2", "gpus_per_node=2", "chunk_resources=gpu=2",
                        "mem=64G", "array=0-3%2", "account=a", "dependency=afterany:7", "error=e", "mail=u@x.org"}));
  for (const auto* line : {"-pe mpi-8 16", "-l gpu=2", "-l h_vmem=8192M", "-t 1-4", "-tc 2", "-P a", "-hold_jid 7",
                           "-j n", "-e e", "-m ae", "-M u@x.org"}) {
    CHECK(has(lines, line));
  }
  CHECK_THROWS_WITH(directives(job(grid_engine)), ContainsSubstring("--parallel-environment is missing"));
  CHECK_NOTHROW(directives(job(grid_engine, {"nodes=1", "ranks_per_node=1"})));
  for (const auto* setting : {"qos=x", "constraint=x", "licenses=x", "filesystems=x", "dependency=afterok:1",
                              "array=1-3", "spare_nodes=1", "gpus_per_node=2", "directives=-t 1-4"}) {
    CHECK_THROWS_AS(directives(job(grid_engine, {"parallel_environment=mpi", setting})), hortator::UsageError);
  }
}

TEST_CASE("schedulers are found by their names") {
  for (const auto& facts : schedulers()) {
    CHECK(scheduler_named(facts.name) == facts.scheduler);
    CHECK(facts_of(facts.scheduler).title == facts.title);
  }
  CHECK_FALSE(scheduler_named("loadleveler").has_value());
  CHECK(scheduler_names() == "slurm pbs flux lsf sge");
}

TEST_CASE("only a job whose output folder exists names it") {
  for (const auto scheduler : {slurm, pbs}) {
    auto submitted = job(scheduler);
    submitted.output = "runs/train/jobs/now";
    for (const auto& line : directives(job(scheduler))) CHECK(line.find("runs/") == std::string::npos);
    CHECK(has(directives(submitted),
              scheduler == slurm ? "--output=runs/train/jobs/now/%j.out" : "-o runs/train/jobs/now/"));
  }
}

TEST_CASE("the job number is found among what sbatch and qsub print") {
  CHECK(job_id(slurm, "41\n") == "41");
  CHECK(job_id(slurm, "sbatch: lua: 12 nodes are free\n41;cluster\n") == "41");
  CHECK(job_id(slurm, "41\nsbatch: note: 7 of 9\n") == "41");
  CHECK(job_id(pbs, "12.server\n") == "12.server");
  CHECK(job_id(pbs, "Your budget: 500 hours\n13[].pbs1.site\r\n") == "13[].pbs1.site");
  CHECK(job_id(pbs, "14\nqsub: 3.5 hours: note\n") == "14");
  CHECK_FALSE(job_id(pbs, "qsub: waiting for server\n").has_value());
  CHECK_FALSE(job_id(slurm, "").has_value());
  CHECK(job_id(flux, "flux-batch: note\nf2vWXyz\n") == "f2vWXyz");
  CHECK(job_id(flux,
               "\xc6\x92"
               "2vWXyz\n") ==
        "\xc6\x92"
        "2vWXyz");
  CHECK_FALSE(job_id(flux, "flux-batch: ERROR: no such queue\n").has_value());
  CHECK(job_id(lsf, "Note.\nJob <41> is submitted to queue <normal>.\n") == "41");
  CHECK_FALSE(job_id(lsf, "Job not submitted.\n").has_value());
  CHECK(job_id(grid_engine, "41\n") == "41");
  CHECK(job_id(grid_engine, "41.1-4:1\n") == "41");
  CHECK_FALSE(job_id(grid_engine, "Unable to run job: 12 denied.\n").has_value());
}

TEST_CASE("values that cannot stand in a directive are refused, in every field") {
  for (const auto* key :
       {"account", "queue", "qos", "constraint", "reservation", "licenses", "mail", "job_name", "run_dir"}) {
    for (const auto& value : hostile) {
      CHECK_THROWS_AS(directives(job(slurm, {std::string(key) + "=" + value})), hortator::UsageError);
    }
  }
  for (const auto* key : {"account", "queue", "filesystems", "mail", "job_name", "run_dir"}) {
    for (const auto& value : hostile) {
      CHECK_THROWS_AS(directives(job(pbs, {std::string(key) + "=" + value})), hortator::UsageError);
    }
  }
  for (const auto scheduler : {flux, lsf, grid_engine}) {
    for (const auto* key : {"account", "queue", "job_name", "run_dir", "output", "error"}) {
      for (const auto& value : hostile) {
        CHECK_THROWS_AS(directives(job(scheduler, {"parallel_environment=mpi", std::string(key) + "=" + value})),
                        hortator::UsageError);
      }
    }
  }
  for (const auto& value : hostile) {
    if (value == "a b") continue;
    CHECK_THROWS_AS(directives(job(slurm, {"directives=--x=" + value})), hortator::UsageError);
  }
  CHECK_THROWS_WITH(directives(job(slurm, {"directives=x"})), ContainsSubstring("begins with '-'"));
  CHECK_NOTHROW(directives(job(slurm, {"directives=--x a"})));
}

TEST_CASE("a job requests whole nodes, and its warning comes after its start") {
  const auto of = [](const Layer& layer) { return job_of(Settings({layer}), slurm, "t", {}).request; };
  CHECK(of({{"ranks", {{"4"}, "x"}}}).ranks_per_node == 4);
  CHECK(of({{"ranks", {{"4"}, "x"}}}).nodes == 1);
  CHECK_THROWS_WITH(of({{"ranks", {{"5"}, "x"}}, {"nodes", {{"2"}, "x"}}}), ContainsSubstring("evenly"));
  CHECK_THROWS_WITH(job(slurm, {"time=00:02:00"}), ContainsSubstring("before the job begins"));
}

TEST_CASE("a template is filled once, and inserted text is not scanned again") {
  const TemplateValues values = {.texts = {{"a", "@b@"}, {"b", "x"}}, .lines = {{"l", {"@a@", "2"}}}};
  CHECK(fill("1 @a@ @b@\n", values) == "1 @b@ x\n");
  CHECK(fill("#SBATCH @l@\nend\n", values) == "#SBATCH @a@\n#SBATCH 2\nend\n");
  CHECK(fill("#@ l\n", values) == "@a@\n2\n");
  CHECK(fill("${x[@]+\"${x[@]}\"} \"$@\"\n", values) == "${x[@]+\"${x[@]}\"} \"$@\"\n");
  CHECK_THROWS_WITH(fill("@c@\n", values), ContainsSubstring("unknown name @c@"));
  CHECK_THROWS_WITH(fill("#@ c\n", values), ContainsSubstring("unknown name @c@"));
}

TEST_CASE("the script quotes arguments and passes variables to the ranks") {
  const Templates templates = {.script =
                                   "@launcher@ @open_mpi@\n@pass@\n@program@\n#@ exports\n#@ modules\n"
                                   "cd @folder@ stamp @stamp@ chain @chain@ hide @secrets@\n#@ agent\n",
                               .common = "",
                               .agent = "agent @run_dir@"};
  auto one = job(slurm, {"environment=NCCL_NET=AWS Libfabric", "modules=a b", "mixed_precision=bf16"});
  one.request.program = "./my $(prog)";
  const auto script = render(one, {}, templates);
  CHECK_THAT(script,
             ContainsSubstring("srun --mpi=pmix --kill-on-bad-exit=1 -N 2 -n 8 --ntasks-per-node=4 --export=ALL no\n"));
  CHECK_THAT(script, ContainsSubstring("'./my $(prog)' --lr 1e-3\n"));
  CHECK_THAT(script, ContainsSubstring("export NCCL_NET='AWS Libfabric'\nexport HORTATOR_MIXED_PRECISION=bf16\n"));
  CHECK_THAT(script, ContainsSubstring("module load 'a b'\n"));
  auto other = job(pbs, {"mixed_precision=bf16"});
  const auto in_pbs = render(other, {.mpi = MpiFlavor::open_mpi}, templates);
  CHECK_THAT(in_pbs, ContainsSubstring("mpirun -n 8 --map-by ppr:4:node yes\n"));
  CHECK_THAT(in_pbs, ContainsSubstring("env HORTATOR_MIXED_PRECISION=bf16 OMP_NUM_THREADS=1\n"));
  CHECK_THAT(in_pbs, ContainsSubstring("cd . stamp $job chain no hide TOKEN|") && ContainsSubstring("|COOKIE|"));
  CHECK_THAT(in_pbs, ContainsSubstring("\nagent @run_dir@\n"));
  other.folder = "/my folder";
  other.stamp = "now";
  other.is_chain = true;
  CHECK_THAT(render(other, {.mpi = MpiFlavor::open_mpi}, templates),
             ContainsSubstring("cd '/my folder' stamp now chain yes"));
}

TEST_CASE("under PBS each rank gets its share of the node's CPUs as threads") {
  const Templates templates = {.script = "@launcher@\n@pass@\n"};
  const auto text_of = [&](const Lines& given, MpiFlavor mpi) {
    return render(job(pbs, given), {.mpi = mpi}, templates);
  };
  CHECK(text_of({"cpus_per_node=64"}, MpiFlavor::open_mpi) ==
        "mpirun -n 8 --map-by ppr:4:node --bind-to none\nenv OMP_NUM_THREADS=16\n");
  CHECK(text_of({"cpus_per_node=64"}, MpiFlavor::pals) ==
        "mpirun -n 8 -ppn 4 --cpu-bind depth -d 16\nenv OMP_NUM_THREADS=16\n");
  CHECK(text_of({"threads=2"}, MpiFlavor::open_mpi) == "mpirun -n 8 --map-by ppr:4:node:PE=2\nenv OMP_NUM_THREADS=2\n");
}
