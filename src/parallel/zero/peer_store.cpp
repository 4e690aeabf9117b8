#include "parallel/zero/peer_store.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <hortator/error.hpp>
#include <memory>

#include "comm/decorators/call_table.hpp"
#include "core/text/text.hpp"
#include "mpi/collectives.hpp"
#include "parallel/zero/absent_arrays.hpp"
#include "parallel/zero/int8_blocks.hpp"

namespace hortator::parallel {
namespace {

at::Tensor as_tensor(const std::byte* bytes, std::int64_t elements, const at::TensorOptions& options) {
  return at::for_blob(const_cast<std::byte*>(bytes), {elements})
      .options(options)
      .target_device(options.device())
      .make_tensor();
}

constexpr std::int64_t failed_read = -1;  // instead of a request: this rank's disk has failed

// A gather that was started ahead may be under way when an exception ends this rank's work: the others may not take
// part in it any more. (On a device its stream waits, and errors of other ranks end that.)
void wait_for(comm::Work& gather, c10::Device device) {
  if (device.is_cpu() && std::uncaught_exceptions() > 0)
    throw Error({.what = "This rank left a gather of parameters after an error"});
  gather.wait();
}

// Converts the second half of the memory of `whole` to all of it. Block by block from the front: values are written
// where those before them have been read.
void widen(const at::Tensor& second_half, const at::Tensor& whole) {
  const auto block = whole.is_cpu() ? std::int64_t{1} << 16 : whole.numel();
  for (std::int64_t begin = 0; begin < whole.numel(); begin += block) {
    const auto count = std::min(block, whole.numel() - begin);
    whole.narrow(0, begin, count).copy_(second_half.narrow(0, begin, count).clone());
  }
}

}  // namespace

comm::Work PeerStore::fetch(const paging::Page& page, std::span<std::byte> frame) {
  const at::NoGradGuard no_grad;
  const auto& mine = part(page).values;
  auto present = hold_on_all(page, PartsTravel::whole).present;
  const auto whole = as_tensor(frame.data(), mine.numel() * ranks_.peers.size(), mine.options());
  auto work = std::make_shared<comm::Work>(ranks_.peers.all_gather(whole, held_memory(mine)));
  return comm::Work([present, work, device = mine.device()] { wait_for(*work, device); });
}

bool PeerStore::can_cast(const paging::Page& page, at::ScalarType type) const {
  return ranks_.casts && part(page).values.scalar_type() == at::kFloat && at::isReducedFloatingType(type);
}

comm::Work PeerStore::fetch_cast(const paging::Page& page, std::span<std::byte> frame, at::ScalarType type) {
  const at::NoGradGuard no_grad;
  const auto& mine = part(page).values;
  const auto rounded = hold_on_all(page, PartsTravel::cast, type).rounded;
  const auto elements = mine.numel() * ranks_.peers.size();
  const auto whole = as_tensor(frame.data(), elements, mine.options());
  const auto second_half = as_tensor(frame.data() + whole.nbytes() / 2, elements, rounded.options());
  auto work = std::make_shared<comm::Work>(ranks_.peers.all_gather(second_half, rounded));
  return comm::Work([=] {
    wait_for(*work, whole.device());
    const at::NoGradGuard without_gradients;
    widen(second_half, whole);
  });
}

comm::Work PeerStore::fetch_rounded(const paging::Page& page, std::span<std::byte> frame) {
  const at::NoGradGuard no_grad;
  const auto& mine = part(page).values;
  const auto packed = hold_on_all(page, PartsTravel::int8).rounded;
  const auto whole = as_tensor(frame.data(), mine.numel() * ranks_.peers.size(), mine.options());
  const auto bytes = packed.numel() * ranks_.peers.size();
  const auto of_all = as_tensor(frame.data() + whole.nbytes() - bytes, bytes, packed.options());
  auto work = std::make_shared<comm::Work>(ranks_.peers.all_gather(of_all, packed));
  return comm::Work([=] {
    wait_for(*work, whole.device());
    const at::NoGradGuard without_gradients;
    unpack_int8(of_all, whole);
  });
}

comm::Work PeerStore::publish(const paging::Page& page, std::span<const std::byte> frame) {
  const at::NoGradGuard no_grad;
  const auto& mine = part(page).values;
  const auto before = mine.nbytes() * static_cast<std::size_t>(ranks_.peers.rank());
  mine.copy_(as_tensor(frame.data() + before, mine.numel(), mine.options()));
  return {};
}

// Holds this rank's part, rounded unless it travels whole, once all ranks hold theirs and request the same. @collective
PeerStore::HeldPart PeerStore::hold_on_all(const paging::Page& page, PartsTravel travel, at::ScalarType type) {
  const auto& mine = part(page).values;
  HeldPart held;
  std::exception_ptr problem;
  try {
    held.present = std::make_shared<interception::Hold>(std::span(&mine, 1), interception::Access::read);
    if (travel == PartsTravel::cast) held.rounded = held_memory(mine).to(type);
    if (travel == PartsTravel::int8) held.rounded = pack_int8(held_memory(mine));
  } catch (...) {  // its part is on a disk, or there is no memory
    problem = std::current_exception();
  }
  agree_on(ways_to_travel * page.number + static_cast<std::int64_t>(travel), problem);
  return held;
}

// @collective
void PeerStore::agree_on(std::int64_t request, const std::exception_ptr& problem) {
  const auto requests = requests_of_all(problem ? failed_read : request);
  const bool is_agreed = std::all_of(requests.begin(), requests.end(), [&](auto one) { return one == request; });
  if (is_agreed && !problem) return;
  diverged_ = true;
  if (problem) std::rethrow_exception(problem);
  const auto failed = std::find(requests.begin(), requests.end(), failed_read);
  if (failed == requests.end()) throw_different(requests);
  const auto rank = ranks_.first + ranks_.stride * static_cast<int>(failed - requests.begin());
  throw Error({.what = text::concat("Rank ", rank, " cannot read its part of a model's parameters"),
               .why = "no node has all of them: they are gathered from all ranks"})
      .on_rank(rank);
}

// @collective
std::vector<std::int64_t> PeerStore::requests_of_all(std::int64_t request) const {
  if (ranks_.host != nullptr) return mpi::all_gather(*ranks_.host, request);
  const auto all = at::empty({ranks_.peers.size()}, at::kLong);
  ranks_.peers.all_gather(all, at::full({1}, request, at::kLong)).wait();
  const auto* first = all.const_data_ptr<std::int64_t>();
  return {first, first + all.numel()};
}

std::string PeerStore::description_of(std::int64_t request) const {
  static constexpr std::array<const char*, ways_to_travel> ways = {"", " in 16 bits", " in 8 bits"};
  return text::concat(parts_[static_cast<std::size_t>(request / ways_to_travel)].name,
                      ways.at(static_cast<std::size_t>(request % ways_to_travel)));
}

void PeerStore::throw_different(std::span<const std::int64_t> requests) const {
  std::vector<std::string> names;
  for (const auto one : requests) names.push_back(description_of(one));
  std::vector<int> ranks(names.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = ranks_.first + ranks_.stride * static_cast<int>(i);
  const auto table = comm::tabulate(names, ranks);
  throw UsageError(
      {.what = text::concat("Ranks use a model's parameters in different orders: ", table.lines),
       .why = "at stage 3 over several nodes no node has all parameters: all ranks gather them together, when all of "
              "them reach them",
       .hint = "use the same layers in the same order and precision on every rank, in evaluation as well; if ranks are "
               "meant to use different layers, set zero.shard_group to ZeroConfig::node and "
               "ddp.find_unused_parameters"})
      .on_rank(table.odd_rank);
}

}  // namespace hortator::parallel
