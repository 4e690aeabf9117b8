#include <sys/resource.h>

#include <sched.h>

#include <algorithm>
#include <chrono>

#include "support/catch.hpp"
#include "tools/env/facts.hpp"
#include "tools/launch/machine.hpp"

using namespace hortator::tools;

TEST_CASE("variables of threads, devices, launchers, schedulers and transports belong in a report, others do not") {
  for (const auto* name :
       {"OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMIX_RANK",
        "NCCL_DEBUG", "HORTATOR_PROGRESS", "PBS_NODEFILE", "LD_LIBRARY_PATH"}) {
    CHECK(env::is_relevant(name));
  }
  for (const auto* name : {"HOME", "PATH", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "MY_OMP_NUM_THREADS", "", "USER"}) {
    CHECK(!env::is_relevant(name));
  }
}

TEST_CASE("the value of a secret is never shown") {
  const std::vector<const char*> environment = {"OMP_NUM_THREADS=4",
                                                "SLURM_JWT=s3cr3t",
                                                "OMPI_MCA_orte_precondition_transports=s3cr3t",
                                                "HORTATOR_token=s3cr3t",
                                                "PBS_JOBCOOKIE=s3cr3t",
                                                "PMIX_SERVER_URI41=s3cr3t",
                                                "HOME=/x",
                                                "NCCL_EMPTY=",
                                                "odd",
                                                nullptr};
  const auto shown = env::relevant_variables(environment.data());
  CHECK(shown.size() == 7);
  CHECK(shown.at("OMP_NUM_THREADS") == "4");
  CHECK(shown.at("NCCL_EMPTY").empty());
  CHECK(std::count_if(shown.begin(), shown.end(), [](const auto& entry) { return entry.second == "(not shown)"; }) ==
        5);
}

TEST_CASE("a report has the same facts as text and as JSON") {
  const env::Report report = {{"machine", {{"cores", 4}, {"devices", {"a", "b"}}, {"shared", true}}},
                              {"job", {{"scheduler", "none"}}}};
  CHECK(env::to_text(report) ==
        "machine\n  cores      4\n  devices    a, b\n  shared     yes\njob\n  scheduler  none\n");
  CHECK(env::to_json(report) == nlohmann::json({{"schema_version", 1},
                                                {"machine", {{"cores", 4}, {"devices", {"a", "b"}}, {"shared", true}}},
                                                {"job", {{"scheduler", "none"}}}}));
  CHECK(env::to_text({{"x", {{"devices", nlohmann::json::array()}}}}) == "x\n  devices  none\n");
}

TEST_CASE("the facts of this machine take less than a second of a processor, and every section has facts") {
  const auto spent = [] {
    double seconds = 0;
    for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
      rusage use{};
      getrusage(who, &use);
      for (const auto& time : {use.ru_utime, use.ru_stime})
        seconds += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    }
    return seconds;
  };
  const auto before = spent();
  const auto facts = env::to_json(env::gather_facts());
  CHECK(spent() - before < 1);
  for (const auto* section :
       {"hortator", "libtorch", "mpi", "hdf5", "cuda", "loaded_libraries", "machine", "job", "environment"}) {
    REQUIRE(facts.contains(section));
    CHECK(!facts[section].empty());
  }
  CHECK(facts["libtorch"]["version"].get<std::string>().substr(0, 2) == "2.");
  CHECK(facts["machine"]["cores"] >= 1);
}

TEST_CASE("the machine's own numbers agree with each other") {
  CHECK(cpu_count() >= core_count());
  CHECK(core_count() >= 1);
  CHECK(!cpu_list().empty());
  CHECK(memory_bytes() > 100'000'000);
  CHECK_THAT(operating_system(), ContainsSubstring("Linux"));
}

TEST_CASE("a process detects that its CPUs were limited") {
  cpu_set_t before;
  CPU_ZERO(&before);
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  const bool was_confined = is_confined();
  CHECK(CPU_COUNT(&before) == cpu_count());
  if (CPU_COUNT(&before) < 2 || was_confined) return;

  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  sched_setaffinity(0, sizeof one, &one);
  CHECK(is_confined());
  CHECK(core_count() == 1);
  CHECK(cpu_list() == std::to_string(first));
  sched_setaffinity(0, sizeof before, &before);
  CHECK(!is_confined());
}
