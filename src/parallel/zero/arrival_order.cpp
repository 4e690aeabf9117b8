#include "parallel/zero/arrival_order.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <map>
#include <string_view>
#include <utility>

#include "core/hash.hpp"
#include "core/text/text.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "runtime/watchdog/stall_report.hpp"

namespace hortator::parallel {
namespace {

std::string_view bytes_of(const std::vector<int>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(int)};
}

std::vector<std::vector<int>> gather_orders(const mpi::Communicator& host, const std::vector<int>& mine) {
  std::vector<std::vector<int>> orders;
  for (const auto& bytes : mpi::all_gather(host, bytes_of(mine))) {
    auto& order = orders.emplace_back(bytes.size() / sizeof(int));
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(order.data()));
  }
  return orders;
}

/// The first position at which some rank reached another parameter than the others. All orders that are not empty have
/// one length.
std::size_t first_difference(const std::vector<std::vector<int>>& orders) {
  const std::vector<int>* first = nullptr;
  std::size_t position = static_cast<std::size_t>(-1);
  for (const auto& order : orders) {
    if (order.empty()) continue;
    if (first == nullptr) first = &order;
    const auto differs = std::mismatch(order.begin(), order.end(), first->begin(), first->end()).first;
    if (differs != order.end()) position = std::min(position, static_cast<std::size_t>(differs - order.begin()));
  }
  return position;
}

[[noreturn]] void throw_different(const std::vector<std::vector<int>>& orders, std::size_t position,
                                  const std::vector<std::string>& names) {
  std::map<int, std::vector<int>> ranks;  // by the parameter that they reached
  for (std::size_t rank = 0; rank < orders.size(); ++rank) {
    if (orders[rank].size() > position) ranks[orders[rank][position]].push_back(static_cast<int>(rank));
  }
  std::vector<std::string> parts;
  int odd_rank = 0;  // the first rank that differs from the lowest one
  for (const auto& [parameter, those] : ranks) {
    parts.push_back(text::concat("to ", names[static_cast<std::size_t>(parameter)], " on rank",
                                 those.size() > 1 ? "s " : " ", runtime::ranges_of(those)));
    odd_rank = std::max(odd_rank, those.front());
  }
  throw UsageError(
      {.what = text::concat("Backward came to a model's parameters in different orders, as number ", position + 1, " ",
                            text::join(parts, " and ")),
       .why =
           "at stage 3 they travel between nodes in one order, the same on all ranks; on one node this is required as "
           "well, so that the program also trains on several",
       .hint = "use the layers in the same order on every rank, or set ddp.find_unused_parameters if ranks are meant "
               "to use "
               "different layers"})
      .on_rank(odd_rank);
}

}  // namespace

void ArrivalOrder::close_pass(std::size_t parameters) {
  last_ = std::exchange(now_, {});
  if (last_.size() != parameters) last_.clear();
}

void ArrivalOrder::agree(const mpi::Communicator& host, const std::vector<std::string>& names) {
  if (!mpi::equal_on_all(host, core::hash(bytes_of(last_)))) {
    const auto orders = gather_orders(host, last_);
    const auto position = first_difference(orders);
    if (position < names.size()) throw_different(orders, position, names);
  }
  agreed_ = last_;
}

}  // namespace hortator::parallel
