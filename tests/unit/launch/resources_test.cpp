#include "launch/settings/resources.hpp"

#include <hortator/error.hpp>

#include "launch/settings/walltime.hpp"
#include "support/catch.hpp"

using namespace hortator::launching;

namespace {

std::string resources(const std::string& text) {
  std::string all;
  for (const auto& [key, value] : parse_pbs_resources(text)) all += std::string(key) + "=" + value + ";";
  return all;
}

}  // namespace

TEST_CASE("GPUs are read with and without a type") {
  CHECK(parse_gpus("4")->count == 4);
  CHECK(parse_gpus("0")->count == 0);
  CHECK(parse_gpus("4")->types.empty());
  CHECK(parse_gpus("a100:4")->count == 4);
  CHECK(parse_gpus("a100:4")->types == "a100:4");
  CHECK(parse_gpus("a100")->count == 1);
  CHECK(parse_gpus("a100:2,h100:1")->count == 3);
  for (const auto* bad : {"", "-1", "a100:", ":4", "a100:x", "4:4", "a b:1", "99999", "a100:2,"}) {
    INFO(bad);
    CHECK_FALSE(parse_gpus(bad).has_value());
  }
}

TEST_CASE("memory is read in the units of Slurm and PBS") {
  CHECK(parse_memory("4096") == 4096);
  CHECK(parse_memory("0") == 0);
  CHECK(parse_memory("512M") == 512);
  CHECK(parse_memory("64G") == 65536);
  CHECK(parse_memory("100gb") == 102400);
  CHECK(parse_memory("1T") == 1048576);
  CHECK(parse_memory("2048kb") == 2);
  for (const auto* bad : {"", "G", "-1", "4X", "4 G", "1.5G", "lots"}) CHECK_FALSE(parse_memory(bad).has_value());
}

TEST_CASE("the tasks of an array are counted") {
  CHECK(parse_array("0-3")->count == 4);
  CHECK(parse_array("0-8:3")->count == 3);
  CHECK(parse_array("5")->count == 1);
  CHECK(parse_array("1,3,7-9")->count == 5);
  CHECK(parse_array("0-9%2")->at_once == 2);
  CHECK(parse_array("0-9%2")->numbers == "0-9");
  CHECK(parse_array("0-3")->is_one_range());
  CHECK_FALSE(parse_array("1,3")->is_one_range());
  for (const auto* bad : {"", "3-0", "a", "0-", "-3", "0-3%0", "0-3%", "0-3:0", "0--3"}) {
    INFO(bad);
    CHECK_FALSE(parse_array(bad).has_value());
  }
}

TEST_CASE("the resources of PBS become settings") {
  CHECK(resources("select=2:ncpus=64:mpiprocs=4:ngpus=4:mem=8gb:ompthreads=2") ==
        "nodes=2;cpus_per_node=64;ranks_per_node=4;gpus_per_node=4;mem=8gb;threads=2;");
  CHECK(resources("select=1,walltime=01:00:00") == "nodes=1;time=01:00:00;");
  CHECK(resources("nodes=2:ppn=4") == "nodes=2;ranks_per_node=4;");
  CHECK(resources("select=2:system=x:model=y") == "nodes=2;chunk_resources=system=x;chunk_resources=model=y;");
  CHECK(resources("select=ncpus=4") == "nodes=1;cpus_per_node=4;");
  CHECK(resources("place=scatter") == "=-l place=scatter;");
  CHECK_THROWS_WITH(resources("select=1:ncpus=2+2:ncpus=4"), ContainsSubstring("different kinds"));
  for (const auto* bad : {"select", "=2", "select=", ""}) CHECK_THROWS_AS(resources(bad), hortator::UsageError);
}

TEST_CASE("points of PBS's mail and types of Slurm's are translated") {
  CHECK(mail_types_of_points("abe") == "FAIL,BEGIN,END");
  CHECK(mail_types_of_points("n") == "NONE");
  CHECK_FALSE(mail_types_of_points("x").has_value());
  CHECK_FALSE(mail_types_of_points("").has_value());
  CHECK(mail_points_of_types("END,FAIL") == "ea");
  CHECK(mail_points_of_types("ALL") == "abe");
  CHECK_FALSE(mail_points_of_types("REQUEUE").has_value());
}

TEST_CASE("times of Slurm and PBS without colons have their own units") {
  CHECK(time_of_slurm("90") == "01:30:00");
  CHECK(time_of_slurm("1-12") == "1-12:00:00");
  CHECK(time_of_slurm("1-12:30") == "1-12:30:00");
  CHECK(time_of_slurm("02:00:00") == "02:00:00");
  CHECK(time_of_slurm("x") == "x");
  CHECK(time_of_pbs("3600") == "01:00:00");
  CHECK(time_of_pbs("02:00:00") == "02:00:00");
}
