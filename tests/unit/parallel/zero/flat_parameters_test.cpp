#include "parallel/zero/flat_parameters.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <filesystem>
#include <hortator/error.hpp>

#include "comm/shm/communicator.hpp"
#include "mpi/agree.hpp"
#include "support/catch.hpp"
#include "support/disk_use.hpp"

using namespace hortator;
using parallel::FlatParameters;
using parallel::Masters;

namespace {

constexpr parallel::ShardLimits small = {.first_bytes = 1, .bytes = 2000};

parallel::RankCoordination with_all() {
  return {.all_or_none = [](const auto& work) { mpi::all_or_none(mpi::Communicator::world(), work); }};
}

at::Tensor counted(at::IntArrayRef sizes, at::ScalarType type = at::kFloat) {
  std::int64_t elements = 1;
  for (const auto size : sizes) elements *= size;
  return at::arange(elements, at::kDouble).view(sizes).to(type).requires_grad_();
}

struct Fixture {
  comm::NodeCommunicator communicator{mpi::Communicator::world()};
  at::Tensor weight = counted({13, 17});
  at::Tensor bias = counted({17});
  at::Tensor half = counted({200}, at::kBFloat16);
  at::Tensor frozen = counted({70}).detach();

  FlatParameters flat(Masters masters = Masters::fp32, const parallel::ParameterPlacement& homes = {}) {
    return {communicator, {{"weight", weight}, {"bias", bias}, {"half", half}, {"frozen", frozen}},
            small,        masters,
            homes,        with_all()};
  }
  FlatParameters sharded(Masters masters = Masters::fp32) { return flat(masters, {.sharded = true}); }
  FlatParameters on_disk(bool sharded, const parallel::ArrayPlacement& home) {
    return flat(Masters::fp32, {.parameters = home, .masters = home, .sharded = sharded});
  }
};

bool are_as_counted(const Fixture& f) {
  return at::equal(f.weight.detach(), counted({13, 17}).detach()) &&
         at::equal(f.bias.detach(), counted({17}).detach()) &&
         at::equal(f.half.detach(), counted({200}, at::kBFloat16).detach()) &&
         at::equal(f.frozen, counted({70}).detach());
}

}  // namespace

TEST_CASE("parameters keep their values and stay leaves; slices are parts of them") {
  Fixture f;
  const auto before = f.weight.detach().clone();
  auto* const impl = f.weight.unsafeGetTensorImpl();
  const auto flat = f.flat();
  CHECK(f.weight.unsafeGetTensorImpl() == impl);
  CHECK(f.weight.is_leaf());
  CHECK(f.weight.requires_grad());
  CHECK(at::equal(f.weight.detach(), before));
  CHECK(at::equal(f.frozen, counted({70}).detach()));
  const auto owned = flat.owned(0);
  CHECK(at::equal(flat.slice(0), before.reshape({-1}).narrow(0, owned.begin, owned.size())));
  CHECK(flat.find(f.bias) == std::size_t{1});
  CHECK(!flat.find(before));
  CHECK(flat.is_trained(2));
  CHECK(!flat.is_trained(3));
}

TEST_CASE("publish gives all ranks what each has written to its slices, through fp32 copies as well") {
  for (const auto masters : {Masters::no, Masters::fp32}) {
    Fixture f;
    auto flat = f.flat(masters);
    CHECK(flat.has_master(2) == (masters == Masters::fp32));
    CHECK(flat.slice(2).scalar_type() == (masters == Masters::fp32 ? at::kFloat : at::kBFloat16));
    flat.arrive();
    for (std::size_t i = 0; i < 3; ++i) flat.slice(i).fill_(static_cast<double>(i) + 5);
    flat.publish_all();
    CHECK((f.weight == 5).all().item<bool>());
    CHECK((f.bias == 6).all().item<bool>());
    CHECK((f.half == 7).all().item<bool>());
    CHECK(f.half.scalar_type() == at::kBFloat16);
    CHECK(at::equal(f.frozen, counted({70}).detach()));
    CHECK_NOTHROW(flat.check_untouched());
    f.communicator.barrier();
  }
}

TEST_CASE("a graph that saved parameters for backward throws after publish") {
  Fixture f;
  auto flat = f.flat();
  const auto loss = (f.weight * f.weight).sum();
  flat.arrive();
  flat.publish_all();
  CHECK_THROWS_WITH(loss.backward(), ContainsSubstring("modified by an inplace operation"));
}

TEST_CASE("parameters that are written past their optimizer, or moved, are reported by name") {
  Fixture f;
  auto flat = f.flat();
  f.communicator.barrier();
  {
    const at::NoGradGuard no_grad;
    f.bias.mul_(1);
  }
  CHECK_THROWS_WITH(flat.check_untouched(), ContainsSubstring("parameter 'bias' was written past its optimizer"));
  Fixture g;
  auto other = g.flat();
  {
    const at::NoGradGuard no_grad;
    g.weight.set_data(g.weight.detach().clone());
  }
  CHECK_THROWS_WITH(other.check_untouched(), ContainsSubstring("parameter 'weight' was given other memory"));
}

TEST_CASE("lent parameters are each rank's own; what owners have written is kept, or nothing is") {
  for (const bool keep : {true, false}) {
    Fixture f;
    auto flat = f.flat();
    flat.lend();
    CHECK_THROWS_WITH(flat.lend(), ContainsSubstring("already summoned"));
    CHECK_THROWS_WITH(flat.arrive(), ContainsSubstring("step was called while"));
    {
      const at::NoGradGuard no_grad;
      f.weight.mul_(0).add_(3);
      f.half.fill_(2);
    }
    flat.take_back(keep);
    CHECK_NOTHROW(flat.check_untouched());
    CHECK(at::equal(f.weight.detach(), keep ? at::ones({13, 17}) * 3 : counted({13, 17}).detach()));
    if (keep) CHECK((flat.slice(2) == 2).all().item<bool>());
    f.communicator.barrier();
  }
}

TEST_CASE("released parameters are each rank's own again") {
  Fixture f;
  auto flat = f.flat();
  const auto shared = f.weight.data_ptr();
  flat.release();
  CHECK(f.weight.data_ptr() != shared);
  CHECK(at::equal(f.weight.detach(), counted({13, 17}).detach()));
  f.communicator.barrier();
}

TEST_CASE("two different parameters that overlap are refused") {
  comm::NodeCommunicator communicator(mpi::Communicator::world());
  const auto memory = at::ones({20});
  std::vector<FlatParameters::Parameter> both = {{"a", memory.narrow(0, 0, 12)}, {"b", memory.narrow(0, 8, 12)}};
  CHECK_THROWS_WITH(FlatParameters(communicator, both, small, Masters::no),
                    ContainsSubstring("parameters 'a' and 'b' share memory"));
}

TEST_CASE("sharded, parameters have their values when they are used, and each rank keeps its part") {
  Fixture f;
  const auto before = f.weight.detach().clone();
  const auto flat = f.sharded();
  CHECK(flat.is_any_sharded());
  CHECK(flat.is_sharded(0));
  CHECK(f.weight.is_leaf());
  CHECK(f.weight.requires_grad());
  CHECK(at::equal(f.weight.detach(), before));
  CHECK(at::equal(f.half.detach(), counted({200}, at::kBFloat16).detach()));
  CHECK(at::equal(f.frozen, counted({70}).detach()));
  for (const std::size_t i : {0, 1, 3}) {
    const auto owned = flat.owned(i);
    const auto whole = flat.parameters()[i].tensor.detach().reshape({-1});
    CHECK(at::equal(flat.slice(i), whole.narrow(0, owned.begin, owned.size())));
    CHECK(at::equal(flat.published_slice(i), flat.slice(i)));
  }
  CHECK(flat.slice(2).scalar_type() == at::kFloat);
  CHECK_NOTHROW(flat.check_untouched());
}

TEST_CASE("sharded, publish gives all ranks what each has written to its slices, through fp32 copies as well") {
  for (const auto masters : {Masters::no, Masters::fp32}) {
    Fixture f;
    auto flat = f.sharded(masters);
    CHECK(f.weight.sum().item<double>() > 0);  // it is in memory
    flat.arrive();
    for (std::size_t i = 0; i < 3; ++i) flat.slice(i).fill_(static_cast<double>(i) + 5);
    flat.publish_all();
    CHECK((f.weight == 5).all().item<bool>());
    CHECK((f.bias == 6).all().item<bool>());
    CHECK((f.half == 7).all().item<bool>());
    CHECK(at::equal(f.frozen, counted({70}).detach()));
    CHECK_NOTHROW(flat.check_untouched());
  }
}

TEST_CASE("sharded, parameters in keep_resident stay whole on every rank") {
  Fixture f;
  const auto flat = f.flat(Masters::fp32, {.keep_resident = {"weight"}, .sharded = true});
  CHECK(!flat.is_sharded(0));
  CHECK(flat.is_sharded(1));
  if (f.communicator.rank() == 0) CHECK(at::equal(f.weight.detach(), counted({13, 17}).detach()));  // alone
  CHECK(at::equal(f.bias.detach(), counted({17}).detach()));
  f.communicator.barrier();
}

TEST_CASE("sharded, lent parameters are each rank's own; what owners have written is kept, or nothing is") {
  for (const bool keep : {true, false}) {
    Fixture f;
    auto flat = f.sharded();
    flat.lend();
    CHECK(flat.is_lent());
    {
      const at::NoGradGuard no_grad;
      f.weight.mul_(0).add_(3);
      f.half.fill_(2);
    }
    flat.take_back(keep);
    CHECK_NOTHROW(flat.check_untouched());
    CHECK(at::equal(f.weight.detach(), keep ? at::ones({13, 17}) * 3 : counted({13, 17}).detach()));
    if (keep) CHECK((flat.slice(2) == 2).all().item<bool>());
  }
}

TEST_CASE(
    "sharded, released parameters are each rank's own again; released locally, they have no values, and using one "
    "throws") {
  Fixture f;
  auto flat = f.sharded();
  {
    Fixture other;
    auto alone = other.sharded();
    alone.release(FlatParameters::ReleaseMode::local);
    CHECK_THROWS_WITH(other.weight.sum(), ContainsSubstring("has no values"));
    CHECK(other.weight.sizes() == at::IntArrayRef{13, 17});
  }
  // A rank that still uses a parameter gets it, even if the others do not use it.
  const auto kept = f.communicator.rank() == 0 ? f.bias : at::Tensor();
  f.bias = at::Tensor();
  flat.release();
  CHECK(at::equal(f.weight.detach(), counted({13, 17}).detach()));
  if (kept.defined()) CHECK(at::equal(kept.detach(), counted({17}).detach()));
  {
    const at::NoGradGuard no_grad;
    f.weight.fill_(f.communicator.rank());
  }
  f.communicator.barrier();
  CHECK((f.weight == f.communicator.rank()).all().item<bool>());
}

TEST_CASE("sharded, a parameter that is written past its optimizer is reported by name") {
  Fixture f;
  auto flat = f.sharded();
  {
    const at::NoGradGuard no_grad;
    f.bias.mul_(1);
  }
  CHECK_THROWS_WITH(flat.check_untouched(), ContainsSubstring("parameter 'bias' was written past its optimizer"));
}

TEST_CASE(
    "on disk, parameters have their values, publish gives all ranks what each has written, and release returns all of "
    "it") {
  const auto folder = std::filesystem::absolute("flat_on_disk");
  for (const int way : {0, 1, 2, 3}) {
    const bool sharded = way % 2 == 1;
    const bool stays = way >= 2;
    INFO((sharded ? "a file each, " : "a file for all, ") << (stays ? "all of it in memory" : "pages leave"));
    Fixture f;
    auto flat = f.on_disk(sharded, {.folder = folder, .resident_bytes = stays ? 1U << 20 : 1U});
    CHECK(flat.is_any_sharded() == sharded);
    CHECK(are_as_counted(f));
    CHECK(at::equal(flat.slice(2), counted({200}).detach().narrow(0, flat.owned(2).begin, flat.owned(2).size())));
    for (int round = 0; round < 2; ++round) {
      flat.arrive();
      for (std::size_t i = 0; i < 3; ++i) flat.slice(i).fill_(static_cast<double>(i) + 5 + round);
      flat.publish_all();
      CHECK((f.weight == 5 + round).all().item<bool>());
      CHECK((f.bias == 6 + round).all().item<bool>());
      CHECK((f.half == 7 + round).all().item<bool>());
      CHECK(at::equal(f.frozen, counted({70}).detach()));
    }
    flat.lend();
    {
      const at::NoGradGuard no_grad;
      f.weight.fill_(f.communicator.rank());
    }
    flat.take_back(true);
    for (int rank = 0; rank < f.communicator.size(); ++rank) {
      const auto owned = flat.plan().owned(0, rank);
      CHECK((f.weight.detach().reshape({-1}).narrow(0, owned.begin, owned.size()) == rank).all().item<bool>());
    }
    CHECK_NOTHROW(flat.check_untouched());
    flat.release();
    CHECK(f.weight.const_data_ptr() != nullptr);
    CHECK((f.bias == 7).all().item<bool>());
    CHECK(test::open_files_in(folder).empty());
    f.communicator.barrier();
    CHECK(std::filesystem::is_empty(folder));
    f.communicator.barrier();
  }
}

TEST_CASE("on disk, the ranks' files together hold the parameters once, whether it is one file or one each") {
  comm::NodeCommunicator communicator(mpi::Communicator::world());
  const auto world = mpi::Communicator::world();
  const auto ranks = static_cast<std::uint64_t>(communicator.size());
  const auto folder = std::filesystem::absolute("flat_disk_use");
  constexpr std::uint64_t bytes = std::uint64_t{12} << 20;
  for (const bool sharded : {false, true}) {
    std::vector<FlatParameters::Parameter> parameters;
    for (int i = 0; i < 4; ++i)
      parameters.push_back({.name = std::to_string(i), .tensor = at::ones({1024, bytes / 4 / 4 / 1024})});
    FlatParameters flat(communicator, parameters, {}, Masters::no,
                        {.parameters = {.folder = folder}, .sharded = sharded}, with_all());
    const auto use = test::disk_use(world, folder);
    INFO(use.mine << " bytes of this rank's " << use.all);
    constexpr std::uint64_t padding = 65536;  // at the ends of arrays
    CHECK(use.all >= bytes);
    CHECK(use.all <= bytes + padding * ranks);
    CHECK(use.mine <= (sharded ? bytes / ranks : bytes) + padding);
    flat.release();
    communicator.barrier();
  }
}

TEST_CASE("a slice that is written past the optimizer's step is reported until it is published") {
  for (const auto masters : {Masters::no, Masters::fp32}) {
    Fixture f;
    auto flat = f.flat(masters);
    flat.note_keeper(0);
    flat.guard_slices();
    CHECK_FALSE(flat.slice(0).grad().count_nonzero().item<bool>());
    CHECK_FALSE(flat.slice(1).grad().defined());  // no optimizer has it
    CHECK_NOTHROW(flat.check_untouched());
    f.communicator.barrier();
    {
      const at::NoGradGuard no_grad;
      at::Tensor(flat.slice(2)).mul_(1);
    }
    CHECK_THROWS_WITH(flat.check_untouched(), ContainsSubstring("'half' was stepped past its optimizer's handle"));
    flat.publish_all();
    CHECK_NOTHROW(flat.check_untouched());
    flat.forget_keeper(0);
    f.communicator.barrier();
  }
}

namespace {

/// While it lives, LibTorch has no memory for tensors of these sizes.
class NoMemoryFor final : public c10::Allocator {
 public:
  explicit NoMemoryFor(std::vector<std::size_t> sizes) : sizes_(std::move(sizes)), former_(c10::GetCPUAllocator()) {
    c10::SetCPUAllocator(this, priority);
  }
  ~NoMemoryFor() override { c10::SetCPUAllocator(former_, priority); }
  NoMemoryFor(const NoMemoryFor&) = delete;
  NoMemoryFor& operator=(const NoMemoryFor&) = delete;

  c10::DataPtr allocate(std::size_t bytes) override {
    if (std::ranges::find(sizes_, bytes) != sizes_.end()) throw Error({.what = "There is no memory, for this test"});
    return former_->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return former_->raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { former_->copy_data(to, from, bytes); }

 private:
  static constexpr std::uint8_t priority = 1;  // that of the allocator which FlatParameters installs
  std::vector<std::size_t> sizes_;
  c10::Allocator* former_;
};

}  // namespace

TEST_CASE("sharded, a rank that has no memory for its copies takes part in the other ranks' gathers") {
  Fixture f;
  auto flat = f.sharded();
  const auto& world = mpi::Communicator::world();
  {
    std::vector<std::size_t> copies;
    if (world.rank() == world.size() - 1) copies = {13 * 17 * 4, 17 * 4, 200 * 2, 70 * 4};
    const NoMemoryFor none(copies);
    CHECK_THROWS_WITH(flat.lend_together(world), ContainsSubstring("There is no memory, for this test"));
  }
  CHECK_FALSE(flat.is_lent());
  CHECK(are_as_counted(f));
  f.communicator.barrier();
}
