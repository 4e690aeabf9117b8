#include "runtime/ending/deadline.hpp"

#include <hortator/error.hpp>
#include <map>
#include <vector>

#include "support/catch.hpp"

using namespace hortator;
using namespace std::chrono_literals;
using runtime::ask_deadline;
using runtime::Deadline;
using runtime::known_deadline;
using runtime::parse_qstat_deadline;
using runtime::parse_slurm_time;

namespace {

using Table = std::map<std::string, std::string>;

core::Variables in(const Table& table) {
  return [table](const char* name) -> std::optional<std::string> {
    const auto found = table.find(name);
    return found == table.end() ? std::nullopt : std::optional<std::string>(found->second);
  };
}

const Deadline now{1'000'000s};

struct Scheduler {
  std::optional<std::string> answer;
  std::vector<std::string> questions = {};
  runtime::Ask ask() {
    return [this](const std::string& command) {
      questions.push_back(command);
      return answer;
    };
  }
};

}  // namespace

TEST_CASE("HORTATOR_DEADLINE overrides Slurm's variable, and invalid values are refused") {
  CHECK_FALSE(known_deadline(in({})).has_value());
  CHECK(known_deadline(in({{"SLURM_JOB_END_TIME", "1700000000"}})) == Deadline(1'700'000'000s));
  CHECK(known_deadline(in({{"SLURM_JOB_END_TIME", "1700000000"}, {"HORTATOR_DEADLINE", "1600000000"}})) ==
        Deadline(1'600'000'000s));
  CHECK_THROWS_WITH(known_deadline(in({{"HORTATOR_DEADLINE", "tonight"}})), ContainsSubstring("date +%s"));
  CHECK_THROWS_AS(known_deadline(in({{"HORTATOR_DEADLINE", "0"}})), UsageError);
}

TEST_CASE("the deadline is queried from Slurm, else from PBS, and from neither outside jobs") {
  Scheduler slurm{"  1-00:00:10\n"};
  CHECK(ask_deadline(in({{"SLURM_JOB_ID", "42"}, {"PBS_JOBID", "1.pbs"}}), slurm.ask(), now) == now + 24h + 10s);
  CHECK(slurm.questions == std::vector<std::string>{"squeue --noheader --format=%L --job='42'"});
  Scheduler pbs{"Job Id: 1.pbs\n    Resource_List.walltime = 02:00:00\n    resources_used.walltime = 00:30:00\n"};
  CHECK(ask_deadline(in({{"PBS_JOBID", "1[7].pbs"}}), pbs.ask(), now) == now + 90min);
  CHECK(pbs.questions == std::vector<std::string>{"qstat -f '1[7].pbs'"});
  Scheduler nobody{"10:00"};
  CHECK_FALSE(ask_deadline(in({}), nobody.ask(), now).has_value());
  CHECK_FALSE(ask_deadline(in({{"SLURM_JOB_ID", "1'; rm -rf x"}}), nobody.ask(), now).has_value());
  CHECK(ask_deadline(in({{"HORTATOR_DEADLINE", "5"}, {"SLURM_JOB_ID", "1"}}), nobody.ask(), now) == Deadline(5s));
  CHECK(nobody.questions.empty());
  Scheduler silent{std::nullopt};
  CHECK_FALSE(ask_deadline(in({{"SLURM_JOB_ID", "42"}}), silent.ask(), now).has_value());
}

TEST_CASE("times in the formats of squeue and qstat are parsed") {
  CHECK(parse_slurm_time("56") == 56s);
  CHECK(parse_slurm_time("34:56") == 34min + 56s);
  CHECK(parse_slurm_time("12:34:56") == 12h + 34min + 56s);
  CHECK(parse_slurm_time("2-12:34:56") == 60h + 34min + 56s);
  for (const auto* other : {"UNLIMITED", "NOT_SET", "INVALID", "", "1-", "a:b", "1:-2"}) {
    INFO(other);
    CHECK_FALSE(parse_slurm_time(other).has_value());
  }
  CHECK(parse_qstat_deadline("Resource_List.walltime = 00:10:00", now) == now + 10min);
  CHECK_FALSE(parse_qstat_deadline("resources_used.walltime = 00:10:00", now).has_value());
}

TEST_CASE("the deadline of a PBS job counts from its start, since PBS updates the time used only every few minutes") {
  std::tm local{};
  const std::time_t start = 1'700'000'000;
  localtime_r(&start, &local);
  char date[64];
  std::strftime(date, sizeof date, "%a %b %d %H:%M:%S %Y", &local);
  const auto listing = std::string("    Resource_List.walltime = 00:10:00\n    stime = ") + date +
                       "\n    resources_used.walltime = 00:00:00\n";
  CHECK(parse_qstat_deadline(listing, now) == Deadline(1'700'000'600s));
  CHECK(parse_qstat_deadline("Resource_List.walltime = 00:10:00\nstime = soon", now) == now + 10min);
}

TEST_CASE("a run stops a minute before the deadline, or as HORTATOR_STOP_MARGIN asks") {
  CHECK(runtime::stop_margin(in({})) == 60s);
  CHECK(runtime::stop_margin(in({{"HORTATOR_STOP_MARGIN", "5s"}})) == 5s);
  CHECK_THROWS_WITH(runtime::stop_margin(in({{"HORTATOR_STOP_MARGIN", "soon"}})),
                    ContainsSubstring("HORTATOR_STOP_MARGIN is 'soon'"));
}

TEST_CASE("a command that cannot be run gives no answer") {
  const auto ask = runtime::ask_shell();
  CHECK(ask("echo 12:00") == "12:00\n");
  CHECK_FALSE(ask("echo 12:00; false").has_value());
  CHECK_FALSE(ask("no-such-program-here").has_value());
}
