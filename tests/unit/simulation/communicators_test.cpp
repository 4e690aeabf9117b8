// The C interface: the communicators that a run begins with.
#include "border_settings.hpp"
#include "c_run.hpp"
#include "support/catch.hpp"

using namespace hortator::test;

TEST_CASE("begin reports a missing file, an unknown key and a bad communicator on all ranks", "[simulation]") {
  hortator_run* run = nullptr;
  const auto world = MPI_Comm_c2f(MPI_COMM_WORLD);
  CHECK(hortator_begin(world, "nowhere.yaml", &run) == HORTATOR_USAGE);
  CHECK(error_has("'nowhere.yaml' cannot be read"));
  CHECK(run == nullptr);
  const auto file = settings_file("bad", "bufers: {}\n");
  CHECK(hortator_begin(world, file.c_str(), &run) == HORTATOR_USAGE);
  CHECK(error_has("did you mean 'buffers'?"));
  CHECK(hortator_begin(123456789, file.c_str(), &run) == HORTATOR_USAGE);
  CHECK(error_has("communicator"));
  CHECK(hortator_begin(world, nullptr, &run) == HORTATOR_USAGE);
  CHECK(hortator_begin(world, file.c_str(), nullptr) == HORTATOR_USAGE);
  CHECK(hortator_end(nullptr, nullptr) == HORTATOR_USAGE);
}

TEST_CASE("a communicator that is not valid is a status on its rank at once", "[simulation]") {
  const auto file = settings_file("handle", border_settings);
  hortator_run* run = nullptr;
  if (world_rank() == 0) {  // the others do not call, and are not waited for
    for (const int handle : {123456789, static_cast<int>(MPI_Comm_c2f(MPI_COMM_NULL))}) {
      CHECK(hortator_begin(handle, file.c_str(), &run) == HORTATOR_USAGE);
      CHECK(error_has("The communicator is null, or its handle is not valid on this rank"));
      CHECK(hortator_share_samples(handle, nullptr, nullptr) == HORTATOR_USAGE);
    }
  }
  MPI_Comm freed = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &freed);
  const auto old = MPI_Comm_c2f(freed);
  MPI_Comm_free(&freed);
  CHECK(hortator_begin(old, file.c_str(), &run) == HORTATOR_USAGE);
  CHECK(run == nullptr);
}

TEST_CASE("a communicator of two groups is refused on all ranks", "[simulation]") {
  if (world_size() < 2) return;
  const auto file = settings_file("groups", border_settings);
  const bool is_first = world_rank() == 0;
  MPI_Comm own = MPI_COMM_NULL;
  MPI_Comm both = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, is_first ? 0 : 1, 0, &own);
  MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, is_first ? 1 : 0, 7, &both);
  hortator_run* run = nullptr;
  const auto status = hortator_begin(MPI_Comm_c2f(both), file.c_str(), &run);
  CHECK(status == HORTATOR_USAGE);
  CHECK(same_on_all(status));
  CHECK(error_has("MPI_Intercomm_merge"));
  MPI_Comm_free(&both);
  MPI_Comm_free(&own);
}

TEST_CASE("a run on a part of the ranks, beside one of all", "[simulation]") {
  if (world_size() < 2) return;
  const CRun all(settings_file("all", border_settings));
  const auto file = settings_file("part", border_settings);
  const bool is_in = world_rank() > 0;
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, is_in ? 1 : 0, 0, &part);
  auto data = numbers(12);
  auto target = numbers(8);
  if (is_in) {
    hortator_run* run = nullptr;
    REQUIRE(hortator_begin(MPI_Comm_c2f(part), file.c_str(), &run) == HORTATOR_OK);
    hortator_model* model = nullptr;
    CHECK(hortator_model_create(run, "line", &model) == HORTATOR_OK);
    {
      CBatch batch(run);
      batch.add(HORTATOR_INPUT, Array(data, {4, 3})).add(HORTATOR_TARGET, Array(target, {4, 2}));
      CHECK(hortator_train(model, batch, nullptr) == HORTATOR_OK);
    }
    CHECK(hortator_end(run, nullptr) == HORTATOR_OK);
  }
  MPI_Comm_free(&part);
  CBatch batch(all);
  batch.add(HORTATOR_INPUT, Array(data, {4, 3})).add(HORTATOR_TARGET, Array(target, {4, 2}));
  CHECK(hortator_train(all.model("line"), batch, nullptr) == HORTATOR_OK);
}
