// Programs that run on the simulated accelerator take its policy from HORTATOR_SIM_POLICY (eager, late, or a seed), and
// fail when it, or the check that HORTATOR_DEBUG_STREAMS asks for, has found a race or a use of released memory.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "runtime/ending/late_failure.hpp"
#include "support/sim/sim.hpp"

#ifdef HORTATOR_CATCH2_V2
#define CATCH_CONFIG_EXTERNAL_INTERFACES
#include <catch2/catch.hpp>
using SimListenerBase = Catch::TestEventListenerBase;
#else
#include <catch2/catch_test_case_info.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
using SimListenerBase = Catch::EventListenerBase;
#endif

namespace {

using namespace hortator;

void set_policy_of_environment() {
  const auto* const given = std::getenv("HORTATOR_SIM_POLICY");
  const std::string policy = given == nullptr ? "eager" : given;
  if (policy == "eager") return sim::set_policy(sim::Policy::eager);
  if (policy == "late") return sim::set_policy(sim::Policy::late);
  sim::set_policy(sim::Policy::random, std::stoull(policy));
}

struct SimFindings : SimListenerBase {
  using SimListenerBase::SimListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    name_ = info.name;
    set_policy_of_environment();
  }
  void testCaseEnded(const Catch::TestCaseStats& /*stats*/) override {
    for (const auto& finding : sim::take_findings()) report(finding.c_str());
    try {
      runtime::throw_late_failure();
    } catch (const std::exception& failure) {
      report(failure.what());
    }
  }
  void testRunEnded(const Catch::TestRunStats& /*stats*/) override {
    std::fflush(stdout);
    if (has_findings_) std::_Exit(4);
  }

 private:
  void report(const char* finding) {
    std::fprintf(stderr, "sim, in \"%s\": %s\n", name_.c_str(), finding);
    has_findings_ = true;
  }

  std::string name_;
  bool has_findings_ = false;
};
CATCH_REGISTER_LISTENER(SimFindings)

}  // namespace
