#pragma once

#include <optional>

#include "fixtures.hpp"

/// Streams for the tests of loaders.
namespace hortator::data_test {

/// 0, 1, ... count - 1, in each pass. Throws at one sample.
struct Counting {
  std::int64_t count = 0;
  std::int64_t bad = -1;
  std::shared_ptr<std::atomic<std::int64_t>> reads = std::make_shared<std::atomic<std::int64_t>>(0);
  std::int64_t at = 0;

  void reset() { at = 0; }
  std::optional<std::int64_t> next() {
    if (at == bad) throw std::out_of_range("the line is dead");
    if (at == count) return std::nullopt;
    ++*reads;
    return at++;
  }
};

/// The same, with a size().
struct Sized : Counting {
  std::optional<std::int64_t> reported = {};
  explicit Sized(std::int64_t count, std::optional<std::int64_t> reported = {}) : Counting{count}, reported(reported) {}
  std::int64_t size() const { return reported.value_or(count); }
};

/// Its samples depend on the epoch, and it can save its position.
struct Placed {
  std::int64_t count = 0;
  std::shared_ptr<std::atomic<std::int64_t>> reads = std::make_shared<std::atomic<std::int64_t>>(0);
  std::int64_t epoch = 0;
  std::int64_t at = 0;

  void set_epoch(std::int64_t now) {
    epoch = now;
    at = 0;
  }
  std::optional<std::int64_t> next() {
    if (at == count) return std::nullopt;
    ++*reads;
    return 1000 * epoch + at++;
  }
  void save(StateWriter& out) const {
    out.put("epoch", epoch);
    out.put("at", at);
  }
  void load(const StateReader& in) {
    epoch = in.get<std::int64_t>("epoch");
    at = in.get<std::int64_t>("at");
  }
};

template <typename Stream>
DataLoader<at::Tensor> bound_stream(Stream stream, const LoaderOptions& options, const LoaderBinding& binding) {
  auto loader = data_loader(std::move(stream), options);
  loader.bind(binding);
  return loader;
}

}  // namespace hortator::data_test
