#include "launch/launcher_output.hpp"

#include "support/catch.hpp"

using namespace hortator::launching;

namespace {

const std::string rule = std::string(74, '-') + '\n';
const std::string stop = rule +
                         "Primary job  terminated normally, but 1 process returned\n"
                         "a non-zero exit code. Per user-direction, the job has been aborted.\n" +
                         rule;
const std::string killed =
    rule + "mpirun noticed that process rank 12 with PID 3456 on node n1 exited on signal 9 (Killed).\n" + rule;
const std::string lost =
    rule +
    "ORTE has lost communication with a remote daemon.\n\n  HNP daemon   : [[5440,0],0] on node n1\n"
    "  Remote daemon: [[5440,0],1] on node n2\n\nThis is usually due to a failure of the network.\n" +
    rule;
const std::string internal =
    "[n1:13920] [[23198,0],0] ORTE_ERROR_LOG: Data unpack would read past end of buffer in file show_help.c at line "
    "501\n";

// What passes when the stream comes in pieces of that size.
std::string passed(LauncherOutput& output, const std::string& stream, std::size_t piece) {
  std::string text;
  for (std::size_t at = 0; at < stream.size(); at += piece) text += output.take(stream.substr(at, piece));
  return text + output.finish();
}

}  // namespace

TEST_CASE("Open MPI's reports about the end of a job are kept out of the ranks' output, in pieces of any size") {
  const auto with = "loss 0.5\n" + internal + stop + "\r[===>  ] 50%" + killed + lost + "the end";
  for (std::size_t piece = 1; piece <= with.size(); ++piece) {
    LauncherOutput output;
    CHECK(passed(output, with, piece) == "loss 0.5\n\r[===>  ] 50%the end");
    CHECK(output.reports() == std::vector{internal, stop, killed, lost});
  }
}

TEST_CASE("all other output passes unchanged, in pieces of any size") {
  const auto framed = rule + "There are not enough slots available in the system\n" + rule;
  const auto longer = std::string(80, '-') + "\nPrimary job  terminated normally, but 1 process returned\n";
  for (const auto& stream :
       {framed, longer, std::string("a\0b\x1b[31m\xff", 9),
        std::string("[n1:12] [[1,2],x] ORTE_ERROR_LOG\n[n1: [[1] ["),
        rule + rule + "Results of mpirun noticed that process rank 1\n" + rule, stop.substr(0, stop.size() - 1)}) {
    for (const std::size_t piece : {1UL, 2UL, 7UL, 4096UL}) {
      LauncherOutput output;
      CHECK(passed(output, stream, piece) == stream);
      CHECK(output.reports().empty());
    }
  }
}

TEST_CASE("where a report is too long to be one does not depend on the pieces") {
  const auto first = "Primary job  terminated normally, but " + std::string(300, 'x') + "\n";
  const auto line = "[n1:1] [[2,3],4] ORTE_ERROR_LOG: " + std::string(5000, 'x') + "\n";
  for (const auto& stream :
       {rule + first + rule, stop.substr(0, stop.size() - rule.size()) + std::string(5000, 'x') + '\n' + rule, line}) {
    for (const std::size_t piece : {1UL, 100UL, stream.size()}) {
      LauncherOutput output;
      CHECK(passed(output, stream, piece) == stream);
      CHECK(output.reports().empty());
    }
  }
}

TEST_CASE("output passes at once unless it may begin a report") {
  LauncherOutput output;
  CHECK(output.take("50 % [==") == "50 % [==");
  CHECK(output.take("\r60 %") == "\r60 %");
  CHECK(output.take("---").empty());
  CHECK(output.release() == "---");
  CHECK(output.take("- and so on") == "- and so on");
  CHECK(output.take(stop.substr(0, 150)).empty());
  CHECK(output.release().empty());  // certainly a report
  CHECK(output.take(stop.substr(150)).empty());
}

TEST_CASE("the zero byte with which Open MPI 5 ends a report goes with it") {
  LauncherOutput output;
  CHECK(output.take(stop + '\0' + "hortator: rank 0") == "hortator: rank 0");
  CHECK(output.take(std::string(1, '\0')) == std::string(1, '\0'));
}

TEST_CASE("the rank that a signal ended is read from the launcher's report") {
  LauncherOutput output;
  CHECK_FALSE(output.killed_rank());
  output.take(stop + killed);
  const auto rank = output.killed_rank();
  REQUIRE(rank);
  CHECK(rank->rank == 12);
  CHECK(rank->pid == 3456);
  CHECK(rank->host == "n1");
  CHECK(rank->signal == 9);
  CHECK_FALSE(parse_killed_rank(stop));
  CHECK(parse_killed_rank("prterun noticed that process rank 1 with PID 7 on node n2\nexited on signal 11 "
                          "(Segmentation fault).")
            ->signal == 11);
}

TEST_CASE("a rank that has not finalised MPI is read from the launcher's report") {
  const auto improper =
      rule +
      "mpirun has exited due to process rank 1 with PID 0 on\nnode n2 exiting improperly. There are three "
      "reasons this could occur:\n\n1. this process did not call \"init\" before exiting\n" +
      rule;
  LauncherOutput output;
  CHECK(output.take(improper).empty());
  const auto rank = output.killed_rank();
  REQUIRE(rank);
  CHECK(rank->rank == 1);
  CHECK(rank->host == "n2");
  CHECK(rank->signal == 0);
}

TEST_CASE("Open MPI's lines about help messages are kept out as well, in pieces of any size") {
  const std::string help =
      "[n1:77] 1 more process has sent help message help-mpi-api.txt / mpi-abort\n"
      "[n1:77] Set MCA parameter \"orte_base_help_aggregate\" to 0 to see all help / error messages\n"
      "[n1:77] 3 more processes have sent help message help-mpi-api.txt / mpi-abort\n";
  const auto with = "a\n" + help + "[n1:77] 2 more batches\n[n1:77] Set of all\n";
  for (std::size_t piece = 1; piece <= with.size(); ++piece) {
    LauncherOutput output;
    CHECK(passed(output, with, piece) == "a\n[n1:77] 2 more batches\n[n1:77] Set of all\n");
    CHECK(output.reports().size() == 3);
  }
}

TEST_CASE("a rank's own line about its failure is noticed") {
  LauncherOutput output;
  output.take("loss 0.5\nhortator: ra");
  CHECK_FALSE(output.has_failure_line());
  output.take("nk 1 (n1): no such file\n");
  CHECK(output.has_failure_line());
  LauncherOutput tagged;
  tagged.take("[1,0]<stderr>:hortator: rank 0 (n1): Another run uses the folder\n");
  CHECK(tagged.has_failure_line());
}

TEST_CASE("srun's line about a killed task names rank, host and signal") {
  const auto killed = parse_srun_line("srun: error: n2: task 3: Killed");
  REQUIRE(killed.has_value());
  CHECK(killed->rank == 3);
  CHECK(killed->host == "n2");
  CHECK(killed->signal == 9);
  CHECK(parse_srun_line("srun: error: n1: task 0: Segmentation fault (core dumped)")->signal == 11);
  for (const auto* line : {"srun: error: n2: tasks 2-3: Killed", "srun: error: n2: task 3: Exited with exit code 1",
                           "srun: error: n2: task 3: Terminated", "the program: srun: error: n2: task 3: Killed", ""})
    CHECK_FALSE(parse_srun_line(line).has_value());
  LauncherOutput output;
  CHECK(output.take("a line\nsrun: error: n2: ta") == "a line\nsrun: error: n2: ta");
  CHECK(output.take("sk 3: Killed\nsrun: error: n1: task 0: Killed\n") ==
        "sk 3: Killed\nsrun: error: n1: task 0: Killed\n");
  REQUIRE(output.killed_rank().has_value());
  CHECK(output.killed_rank()->rank == 3);
}
