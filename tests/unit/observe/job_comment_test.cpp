#include "observe/status/job_comment.hpp"

#include "support/catch.hpp"

using namespace hortator;
using observe::job_comment;
using observe::RankStatus;

TEST_CASE("the comment of a job names what is known, in a fixed order") {
  RankStatus main{.updates = 4200};
  CHECK(job_comment(main, {}) == "step 4200");
  main.updates_per_second = 2.5;
  CHECK(job_comment(main, {}) == "step 4200 2.5 steps/s");
  main.loops = {{.title = "", .done = 7}, {.title = "epoch", .done = 3, .total = 10}};
  main.values = {{"lr", 0.1}, {"loss", 1.93}};
  main.save = {.at = 1795911780};
  CHECK(job_comment(main, 82.14) == "step 4200 epoch 3/10 loss 1.93 82.1 samples/s ckpt 00:23");
  main.is_over = true;
  CHECK(job_comment(main, 82.14) == "over: step 4200 epoch 3/10 loss 1.93 82.1 samples/s ckpt 00:23");
}

TEST_CASE("the comment is short, and has no character that a scheduler or a shell interprets") {
  const std::string wild = "a\"b'c;d|e\n$(f)`g`, h=i\\\xc3\xa4";
  RankStatus main{.loops = {{.title = wild, .done = 1, .total = 2}}, .updates = 1, .values = {{wild, 1}}};
  auto comment = job_comment(main, {});
  CHECK(comment.find_first_of("\"';|\n$()`,=\\") == comment.npos);
  CHECK(comment == "step 1 a_b_c_d_e___f__g__ h_i__ 1/2 a_b_c_d_e___f__g__ h_i__ 1");
  main.loops[0].title = main.values[0].first = std::string(5000, 'x');
  CHECK(job_comment(main, {}).size() <= 200);
}

TEST_CASE("the command is that of the job's scheduler") {
  using Words = std::vector<std::string>;
  CHECK(observe::comment_command("slurm 77", "step 1") == Words{"scontrol", "update", "JobId=77", "Comment=step 1"});
  CHECK(observe::comment_command("pbs 12.server", "step 1") == Words{"qalter", "-W", "comment=step 1", "12.server"});
  CHECK(observe::comment_command("", "step 1").empty());
  CHECK(observe::comment_command("other 1", "step 1").empty());
}
