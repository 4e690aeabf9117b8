// The main function of every test program, as a single process or under mpirun. MPI is initialised for all tests; all
// ranks return the same exit code; a failure that would leave other ranks waiting aborts the job with a line of the
// failed rank.
//
// In a batch (batch/batch.sh sets HORTATOR_TEST_BATCH to a log file) many cases run in one start of the ranks. Rank 0
// logs each case and its own processor time; after it all ranks compare its result, and it must leave no message,
// descriptor or thread behind. A case that fails ends the run on all ranks.
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>

#include "support/environment_copy.hpp"
#include "support/leftovers.hpp"

#ifdef HORTATOR_CATCH2_V2
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
using ListenerBase = Catch::TestEventListenerBase;
using Stats = Catch::AssertionStats const&;
using OnAssertion = bool;
#else
#include <catch2/catch_assertion_result.hpp>
#include <catch2/catch_session.hpp>
#include <catch2/interfaces/catch_interfaces_reporter.hpp>
#include <catch2/internal/catch_string_manip.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
using ListenerBase = Catch::EventListenerBase;
using Stats = Catch::AssertionStats const&;
using OnAssertion = void;
#endif

namespace {

int world_size() {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

// REQUIRE and uncaught exceptions end the test case on this rank only: other ranks in a collective would hang.
// (FatalErrorCondition is ignored: the signal handler of a killed rank has already reported it.)
struct FailFast : ListenerBase {
  using ListenerBase::ListenerBase;

  OnAssertion assertionEnded(Stats stats) override {
    const auto& result = stats.assertionResult;
    const auto kind = result.getResultType();
    const bool fatal = kind == Catch::ResultWas::ThrewException || kind == Catch::ResultWas::ExplicitFailure ||
                       (!result.isOk() && result.getTestMacroName() == std::string("REQUIRE"));
    if (fatal && !result.isOk() && kind != Catch::ResultWas::FatalErrorCondition && world_size() > 1) {
      std::ostringstream line;
      line << "rank " << world_rank() << " failed: " << result.getSourceInfo().file << ":"
           << result.getSourceInfo().line << ": "
           << (result.hasExpression() ? std::string(result.getExpressionInMacro()) : std::string()) << " "
           << std::string(result.getMessage()) << "\n";
      std::cerr << line.str() << std::flush;
      MPI_Abort(MPI_COMM_WORLD, 3);
    }
#ifdef HORTATOR_CATCH2_V2
    return false;
#endif
  }
#ifdef HORTATOR_CATCH2_V2
  void assertionStarting(Catch::AssertionInfo const&) override {}
#endif
};
CATCH_REGISTER_LISTENER(FailFast)

std::string batch_log() {
  const char* log = std::getenv("HORTATOR_TEST_BATCH");
  return log == nullptr ? std::string() : log;
}

std::string seconds_for_a_case() {
  const char* limit = std::getenv("HORTATOR_TEST_CASE_LIMIT");
  return limit == nullptr ? std::string("120") : limit;
}

bool holds_on_all_ranks(bool here) {
  int all = here ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all == 1;
}

// Local: whether a message that no rank has received waits here. Call it after a barrier.
bool has_message() {
  int found = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
  return found != 0;
}

std::string name_of(Catch::TestCaseStats const& stats) {
#ifdef HORTATOR_CATCH2_V2
  return stats.testInfo.name;
#else
  return stats.testInfo->name;
#endif
}

}  // namespace

// What a part of the tests does before each case (nodes_by_variable.cpp).
extern "C" void hortator_test_before_case() __attribute__((weak));

namespace {

// Environment variables that a case sets are gone after it.
struct OwnEnvironment : ListenerBase {
  using ListenerBase::ListenerBase;

  void testCaseStarting(Catch::TestCaseInfo const& /*info*/) override {
    if (hortator_test_before_case != nullptr) hortator_test_before_case();
    before_.emplace();
  }
  void testCaseEnded(Catch::TestCaseStats const& /*stats*/) override { before_->restore(); }

 private:
  std::optional<hortator::test::EnvironmentCopy> before_;
};
CATCH_REGISTER_LISTENER(OwnEnvironment)

// Each case of a batch: its line in the log, its time limit, and what it must not leave behind.
struct CaseOfBatch : ListenerBase {
  using ListenerBase::ListenerBase;

  void testCaseStarting(Catch::TestCaseInfo const& info) override {
    if (batch_log().empty()) return;
    log("begin", info.name);
    starts_pool_ = info.tagsAsString().find("[pool]") != std::string::npos;
    std::cout << std::flush;
    before_.emplace();
    began_ = std::clock();
    alarm(static_cast<unsigned>(std::stoul(seconds_for_a_case())));
  }

  void testCaseEnded(Catch::TestCaseStats const& stats) override {
    if (batch_log().empty()) return;
    MPI_Barrier(MPI_COMM_WORLD);
    alarm(0);
    std::string left = before_->new_ones(starts_pool_);
    if (has_message()) left += " a message that no rank received";
    if (!left.empty()) {
      std::ostringstream line;  // in one piece: other ranks write to the same file
      line << "rank " << world_rank() << ": '" << name_of(stats) << "' leaves behind:" << left << '\n';
      std::cerr << line.str() << std::flush;
    }
    const bool passed = stats.totals.assertions.failed == 0 && left.empty();
    if (holds_on_all_ranks(passed)) {
      log("passed", std::to_string((std::clock() - began_) * 1000 / CLOCKS_PER_SEC) + " ms");
    } else {
      std::cout << std::flush;
      MPI_Finalize();
      std::_Exit(3);
    }
  }

 private:
  static void log(const std::string& event, const std::string& name) {
    if (world_rank() == 0) std::ofstream(batch_log(), std::ios::app) << event << "\t" << name << "\n";
  }

  std::optional<hortator::test::Leftovers> before_;
  std::clock_t began_ = 0;    // processor time
  bool starts_pool_ = false;  // a pool of OpenMP or LibTorch, which stays: a case with the tag [pool]
};
CATCH_REGISTER_LISTENER(CaseOfBatch)

}  // namespace

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  Catch::Session session;
  // Catch2 3.9 and later run tests in random order by default, which would differ between ranks.
  int failed = session.applyCommandLine(argc, argv);
#ifdef HORTATOR_CATCH2_V2
  session.configData().runOrder = Catch::RunTests::InDeclarationOrder;
  session.configData().useColour = Catch::UseColour::No;  // escape sequences would appear in what tests capture
#else
  session.configData().runOrder = Catch::TestRunOrder::Declared;
  session.configData().defaultColourMode = Catch::ColourMode::None;
#endif
  if (failed == 0) failed = session.run();
  if (world_rank() != 0 && failed != 0) std::cerr << "rank " << world_rank() << ": " << failed << " failed\n";
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return failed == 0 ? 0 : 1;
}
