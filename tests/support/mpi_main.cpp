// The main function of every test program, as a single process or under mpirun. MPI is initialised for all tests; all
// ranks return the same exit code; a failure that would leave other ranks waiting aborts the job with a line of the
// failed rank.
#include <mpi.h>

#include <cstdio>
#include <iostream>
#include <sstream>

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

}  // namespace

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  Catch::Session session;
  // Catch2 3.9 and later run tests in random order by default, which would differ between ranks.
  int failed = session.applyCommandLine(argc, argv);
#ifdef HORTATOR_CATCH2_V2
  session.configData().runOrder = Catch::RunTests::InDeclarationOrder;
#else
  session.configData().runOrder = Catch::TestRunOrder::Declared;
#endif
  if (failed == 0) failed = session.run();
  if (world_rank() != 0 && failed != 0) std::cerr << "rank " << world_rank() << ": " << failed << " failed\n";
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return failed == 0 ? 0 : 1;
}
