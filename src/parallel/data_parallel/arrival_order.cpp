#include "parallel/data_parallel/arrival_order.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <map>
#include <string_view>
#include <utility>

#include "core/hash.hpp"
#include "core/text/text.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "runtime/watchdog/stall_words.hpp"

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

/// The first place at which some rank has come to another parameter than the others; all that say something have come
/// to as many.
std::size_t first_difference(const std::vector<std::vector<int>>& orders) {
  const std::vector<int>* first = nullptr;
  std::size_t place = static_cast<std::size_t>(-1);
  for (const auto& order : orders) {
    if (order.empty()) continue;
    if (first == nullptr) first = &order;
    const auto differs = std::mismatch(order.begin(), order.end(), first->begin(), first->end()).first;
    if (differs != order.end()) place = std::min(place, static_cast<std::size_t>(differs - order.begin()));
  }
  return place;
}

[[noreturn]] void throw_different(const std::vector<std::vector<int>>& orders, std::size_t place,
                                  const std::vector<std::string>& names) {
  std::map<int, std::vector<int>> ranks;  // by the parameter that they have come to
  for (std::size_t rank = 0; rank < orders.size(); ++rank) {
    if (orders[rank].size() > place) ranks[orders[rank][place]].push_back(static_cast<int>(rank));
  }
  std::vector<std::string> words;
  int odd = 0;  // the first that is not with the lowest
  for (const auto& [parameter, those] : ranks) {
    words.push_back(text::concat("to ", names[static_cast<std::size_t>(parameter)], " on rank",
                                 those.size() > 1 ? "s " : " ", runtime::ranges_of(those)));
    odd = std::max(odd, those.front());
  }
  throw UsageError(
      {.what = text::concat("backward came to a model's parameters in different orders, as number ", place + 1, " ",
                            text::join(words, " and ")),
       .why = "at stage 3 they travel between nodes in one order, the same on all ranks, and on one node a program is "
              "held to it so that it trains on several as well",
       .hint =
           "use the layers in the same order on every rank, or set ddp.find_unused_parameters where ranks are meant "
           "to go different ways"})
      .on_rank(odd);
}

}  // namespace

void ArrivalOrder::close_pass(std::size_t parameters) {
  last_ = std::exchange(now_, {});
  if (last_.size() != parameters) last_.clear();
}

void ArrivalOrder::agree(const mpi::Communicator& host, const std::vector<std::string>& names) {
  if (!mpi::equal_on_all(host, core::hash(bytes_of(last_)))) {
    const auto orders = gather_orders(host, last_);
    const auto place = first_difference(orders);
    if (place < names.size()) throw_different(orders, place, names);
  }
  agreed_ = last_;
}

}  // namespace hortator::parallel
