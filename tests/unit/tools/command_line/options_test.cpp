#include "tools/command_line/options.hpp"

#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "support/catch.hpp"
#include "tools/command_line/command_line.hpp"
#include "tools/flags.hpp"
#include "tools/verbs.hpp"

using namespace hortator::tools;
namespace po = boost::program_options;
using hortator::launching::Scope;

namespace {

Options known() {
  Options options;
  options.named.add_options()("ranks,n", po::value<int>(), "")("dry-run", "")(
      "program", po::value<std::vector<std::string>>(), "");
  options.positional.add("program", -1);
  options.ends_at_text = true;
  return options;
}

using Words = std::vector<std::string>;

Options with_settings(Scope scope) {
  Options options;
  options.ends_at_text = true;
  add_setting_flags(options, scope);
  return with_text(options, "program");
}

hortator::launching::Settings settings_in(const Words& arguments, Scope scope = Scope::job) {
  return hortator::launching::Settings({settings_from_flags(parse(arguments, with_settings(scope)), scope)});
}

}  // namespace

TEST_CASE("a value may equal the name of an option, for every option that has a value") {
  const auto options = with_settings(Scope::job);
  for (const auto& option : options.named.options()) {
    if (option->semantic()->max_tokens() == 0 || option->long_name() == "program") continue;
    const auto name = "--" + option->long_name();
    for (const auto* value : {"debug", "ranks", "queue", "--debug"}) {
      try {
        const auto values = parse({name, value, "prog", "--debug"}, options);
        CHECK(values.contains(option->long_name()));
        CHECK(!values.contains("debug"));
        CHECK(values["program"].as<Words>() == Words{"prog", "--debug"});
      } catch (const hortator::UsageError& error) {  // such as where a number is expected
        CHECK_THAT(error.what(), ContainsSubstring(hortator::text::concat("got '", value, "'")));
      }
    }
  }
  CHECK(settings_in({"--queue", "debug", "./x"}).word("queue") == "debug");
}

TEST_CASE("spellings of Slurm and mpirun set the settings of the same meaning") {
  for (const Words& arguments :
       {Words{"-p", "debug", "-A", "a", "-N", "2", "--ntasks-per-node", "4", "-c", "8", "-t", "02:00:00", "-J", "j"},
        Words{"--partition=debug", "--account=a", "-N2", "--ntasks-per-node=4", "--cpus-per-task=8", "--time=02:00:00",
              "--job-name=j"},
        Words{"-pdebug", "-Aa", "--nodes", "2", "-ppn", "4", "-c8", "-t02:00:00", "-Jj"}}) {
    auto with_program = arguments;
    with_program.insert(with_program.end(), {"./x", "-p", "other"});
    const auto settings = settings_in(with_program);
    CHECK(settings.word("queue") == "debug");
    CHECK(settings.word("account") == "a");
    CHECK(settings.number("nodes") == 2);
    CHECK(settings.number("ranks_per_node") == 4);
    CHECK(settings.number("threads") == 8);
    CHECK(settings.word("time") == "02:00:00");
    CHECK(settings.word("job_name") == "j");
  }
  for (const Words& arguments :
       {Words{"-np", "3"}, Words{"--np=3"}, Words{"-n", "3"}, Words{"-n3"}, Words{"--ntasks", "3"}})
    CHECK(settings_in(arguments, Scope::launch).number("ranks") == 3);
  CHECK(settings_in({"-np", "2", "-hostfile", "h", "./x"}, Scope::launch).word("hostfile") == "h");
  CHECK_THROWS_WITH(settings_in({"-np", "two", "./x"}, Scope::launch),
                    ContainsSubstring("-np: expected a whole number from 1, got 'two'"));
  CHECK(settings_in({"-p", "gpu", "-n", "2", "./x"}, Scope::launch).number("ranks") == 2);  // reported, without effect
  CHECK_THROWS_WITH(settings_in({"-np"}, Scope::launch), ContainsSubstring("-np: the value is missing"));
}

TEST_CASE("what only Slurm knows is passed on to it") {
  const auto settings =
      settings_in({"--scheduler", "slurm", "--comment", "a", "-x", "n1", "--gres=nvme:1", "--exclusive=user", "./x"});
  CHECK(settings.list("directives") == Words{"--comment=a", "--exclude=n1", "--gres=nvme:1", "--exclusive=user"});
  CHECK_THROWS_WITH(settings_in({"--scheduler", "pbs", "-x", "n1", "./x"}),
                    ContainsSubstring("-x is an option of Slurm, and this is a PBS job"));
}

TEST_CASE("a short flag means what the scheduler at hand means by it") {
  CHECK(settings_in({"--scheduler", "slurm", "-q", "high", "./x"}).word("qos") == "high");
  CHECK(settings_in({"--scheduler=pbs", "-q", "high", "./x"}).word("queue") == "high");
  CHECK(settings_in({"--site", "polaris", "-N", "j", "./x"}).word("job_name") == "j");
  CHECK(settings_in({"--scheduler", "slurm", "-N", "2", "./x"}).word("nodes") == "2");
}

TEST_CASE("flags of accelerate launch do what its table says") {
  const auto settings =
      settings_in({"--num_processes", "2", "--mixed_precision=bf16", "--multi_gpu", "--main_process_port", "29500",
                   "--gradient_accumulation_steps", "4", "--fsdp_sharding_strategy", "FULL_SHARD", "--num-machines",
                   "2", "--mpirun_hostfile", "h", "./x"},
                  Scope::launch);
  CHECK(settings.number("ranks") == 2);
  CHECK(settings.word("mixed_precision") == "bf16");
  CHECK(settings.number("gradient_accumulation_steps") == 4);
  CHECK(settings.word("zero_stage") == "3");
  CHECK(settings.number("nodes") == 2);
  CHECK(settings.word("hostfile") == "h");
  CHECK_THROWS_WITH(settings_in({"--mixed_precision", "fp4", "./x"}),
                    ContainsSubstring("expected one of no, fp16, bf16, fp8, got 'fp4'"));
  const auto megatron = settings_in({"--use_megatron_lm", "--megatron_lm_pp_degree", "2", "./x"}, Scope::launch);
  CHECK(megatron.number("pipeline") == 2);
  CHECK(megatron.word("gradient_clipping") == "1");
  CHECK_THROWS_WITH(settings_in({"--nonsense", "./x"}), ContainsSubstring("Unknown option '--nonsense'"));
}

TEST_CASE("two flags of Accelerate for one axis are an error, unless one of them is 1") {
  const auto context = [](const char* cp, const char* sp) {
    return settings_in({"--parallelism_config_cp_size", cp, "--parallelism_config_sp_size", sp, "./x"}, Scope::launch)
        .number("context");
  };
  CHECK_THROWS_WITH(
      context("2", "2"),
      ContainsSubstring("--parallelism_config_cp_size and --parallelism_config_sp_size exclude each other"));
  CHECK(context("2", "1") == 2);
  CHECK(context("1", "2") == 2);
}

TEST_CASE("the help lists every spelling that the verb accepts") {
  const auto help = synonym_help(with_settings(Scope::job));
  for (const auto* text : {"-p, --partition", "-c, --cpus-per-task", "--queue", "passed on to Slurm"})
    CHECK_THAT(help, ContainsSubstring(text));
  CHECK(help.find("-hostfile") == std::string::npos);  // the scheduler chooses the hosts
  CHECK(synonym_help(known()).empty());
}

TEST_CASE("arguments after the first text are not parsed") {
  for (const Words& text : {Words{"-n", "4", "prog", "-n", "5", "--dry-run", "--", "x"},
                            Words{"-n4", "prog", "-n", "5", "--dry-run", "--", "x"},
                            Words{"--ranks=4", "prog", "-n", "5", "--dry-run", "--", "x"},
                            Words{"--ranks", "4", "prog", "-n", "5", "--dry-run", "--", "x"}}) {
    const auto values = parse(text, known());
    CHECK(values["ranks"].as<int>() == 4);
    CHECK(!values.contains("dry-run"));
    CHECK(values["program"].as<Words>() == Words{"prog", "-n", "5", "--dry-run", "--", "x"});
  }
  CHECK(parse({"--dry-run", "prog"}, known()).contains("dry-run"));
  CHECK(parse({"prog", ""}, known())["program"].as<Words>() == Words{"prog", ""});
}

TEST_CASE("an unknown option is reported with the nearest one") {
  CHECK_THROWS_WITH(parse({"--dry-ran", "x"}, known()),
                    ContainsSubstring("Unknown option '--dry-ran'; did you mean '--dry-run'?"));
  CHECK_THROWS_WITH(parse({"--verbose", "x"}, known()), ContainsSubstring("known are: --ranks, --dry-run"));
  CHECK_THROWS_WITH(parse({"--dry", "x"}, known()), ContainsSubstring("Unknown option '--dry'"));
  CHECK_THROWS_AS(parse({"-q"}, known()), hortator::UsageError);
}

TEST_CASE("missing values and values of the wrong type are usage errors") {
  CHECK_THROWS_AS(parse({"-n"}, known()), hortator::UsageError);
  CHECK_THROWS_AS(parse({"-n", "two", "prog"}, known()), hortator::UsageError);
  CHECK_THROWS_AS(parse({"--dry-run=yes"}, known()), hortator::UsageError);
  CHECK_THROWS_AS(parse({"word"}, Options{}), hortator::UsageError);
}

TEST_CASE("an unknown verb is reported with the nearest one") {
  CHECK(find(verbs(), "env", "verb").name == "env");
  CHECK_THROWS_WITH(find(verbs(), "lanch", "verb"), ContainsSubstring("Unknown verb 'lanch'; did you mean 'launch'?"));
  CHECK_THROWS_WITH(
      find(verbs(), "xyzzy", "verb"),
      ContainsSubstring("known are: config, launch, job, sweep, new, doctor, test, watch, why, compare-runs, plot, "
                        "scale, trace, plan, rehearse, env, checkpoint, "));
}
