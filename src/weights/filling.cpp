#include "weights/filling.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <memory>

#include "formats/tensor/tensor_ranges.hpp"

namespace hortator::weights {
namespace {

using weights::WeightSource;

/// Splits elements of a tensor into the ranges in which they are read.
std::vector<core::Range> pieces_of(const formats::TensorSpec& spec, core::Range elements) {
  const auto max_elements = WeightSource::piece_bytes / spec.element_bytes();
  std::vector<core::Range> pieces;
  for (auto begin = elements.begin; begin < elements.end; begin += max_elements)
    pieces.push_back({begin, std::min(begin + max_elements, elements.end)});
  return pieces;
}

core::Range all_of(const formats::TensorSpec& spec) { return {0, spec.elements()}; }

/// Memory for one piece, in the type of the file.
at::Tensor buffer_for(const formats::TensorSpec& spec) {
  const auto element = spec.element_bytes();
  return at::empty({std::min(WeightSource::piece_bytes / element, spec.elements())}, spec.type);
}

std::byte* bytes_of(const at::Tensor& flat) { return static_cast<std::byte*>(flat.mutable_data_ptr()); }

/// Reads these elements of a tensor piece by piece and calls work(range, values).
template <typename Work>
void for_each_stored(const WeightSource& source, const std::string& name, core::Range elements, const Work& work) {
  const auto spec = source.spec(name);
  const auto buffer = buffer_for(spec);
  for (const auto& piece : pieces_of(spec, elements)) {
    source.read(name, piece, bytes_of(buffer));
    work(piece, buffer.narrow(0, 0, piece.size()));
  }
}

void fill_one(const WeightSource& source, const Filling& filling) {
  const auto spec = source.spec(filling.stored);
  const auto elements = filling.elements.value_or(all_of(spec));
  const auto target = filling.tensor.detach();
  if (target.scalar_type() == spec.type && formats::lies_flat(target)) {
    auto* to = bytes_of(target);
    const auto element = spec.element_bytes();
    for (const auto& piece : pieces_of(spec, elements))
      source.read(filling.stored, piece, to + (piece.begin - elements.begin) * element);
    return;
  }
  for_each_stored(source, filling.stored, elements, [&](const core::Range& piece, const at::Tensor& values) {
    formats::scatter(values, target, piece.begin - elements.begin);
  });
}

/// A piece that one rank reads for all.
struct SharedPiece {
  std::size_t filling = 0;
  at::ScalarType type = at::kFloat;
  core::Range elements = {};

  std::int64_t bytes() const { return elements.size() * static_cast<std::int64_t>(c10::elementSize(type)); }
};

std::vector<SharedPiece> shared_pieces(const WeightSource& source, const std::vector<Filling>& fillings) {
  std::vector<SharedPiece> all;
  for (std::size_t i = 0; i < fillings.size(); ++i) {
    const auto spec = source.spec(fillings[i].stored);
    for (const auto& piece : pieces_of(spec, all_of(spec)))
      all.push_back({.filling = i, .type = spec.type, .elements = piece});
  }
  return all;
}

/// In each round, `width_` ranks read one piece each, and all pieces are broadcast.
class BroadcastRounds {
 public:
  BroadcastRounds(comm::Communicator& comm, const WeightSource& source, const std::vector<Filling>& fillings)
      : comm_(comm),
        source_(source),
        fillings_(fillings),
        pieces_(shared_pieces(source, fillings)),
        width_(static_cast<std::size_t>(std::min(comm.size(), max_width))),
        buffers_(at::empty({static_cast<std::int64_t>(width_), WeightSource::piece_bytes}, at::kByte)) {}

  void run() {
    for (std::size_t begin = 0; begin < pieces_.size(); begin += width_) {
      const auto end = std::min(begin + width_, pieces_.size());
      for (auto i = begin; i < end; ++i) attempt([&] { read(i); });
      send(begin, end);
      for (auto i = begin; i < end; ++i) attempt([&] { put(i); });
    }
    if (problem_) std::rethrow_exception(problem_);
  }

 private:
  static constexpr int max_width = 12;  // pieces of 4 MiB

  int reader_of(std::size_t piece) const {
    return static_cast<int>(piece % width_ * static_cast<std::size_t>(comm_.size()) / width_);
  }
  at::Tensor bytes_of_piece(std::size_t piece) const {
    return buffers_.select(0, static_cast<std::int64_t>(piece % width_)).narrow(0, 0, pieces_[piece].bytes());
  }

  // A rank that fails still takes part in the broadcasts, so that no other rank waits for it, and throws at the end.
  template <typename Work>
  void attempt(const Work& work) {
    if (problem_) return;
    try {
      work();
    } catch (...) {
      problem_ = std::current_exception();
    }
  }

  void read(std::size_t piece) {
    const auto& [filling, type, elements] = pieces_[piece];
    if (reader_of(piece) == comm_.rank())
      source_.read(fillings_[filling].stored, elements, bytes_of(bytes_of_piece(piece)));
  }
  void send(std::size_t begin, std::size_t end) {
    std::vector<comm::Work> works;
    for (auto i = begin; i < end; ++i) works.push_back(comm_.broadcast(bytes_of_piece(i), reader_of(i)));
    for (auto& work : works) work.wait();
  }
  void put(std::size_t piece) {
    const auto& [filling, type, elements] = pieces_[piece];
    formats::scatter(bytes_of_piece(piece).view(type), fillings_[filling].tensor.detach(), elements.begin);
  }

  comm::Communicator& comm_;
  const WeightSource& source_;
  const std::vector<Filling>& fillings_;
  std::vector<SharedPiece> pieces_;
  std::size_t width_;
  at::Tensor buffers_;
  std::exception_ptr problem_;
};

}  // namespace

void fill(const WeightSource& source, const std::vector<Filling>& fillings) {
  const at::NoGradGuard no_grad;
  for (const auto& filling : fillings) fill_one(source, filling);
  source.require_unchanged();
}

std::function<void()> filling_together(comm::Communicator& comm, const WeightSource& source,
                                       const std::vector<Filling>& fillings) {
  return [rounds = std::make_shared<BroadcastRounds>(comm, source, fillings), &source] {
    const at::NoGradGuard no_grad;
    rounds->run();
    source.require_unchanged();
  };
}

bool holds(const WeightSource& source, const Filling& filling) {
  const at::NoGradGuard no_grad;
  const auto tensor = filling.tensor.detach();
  bool same = true;
  for_each_stored(source, filling.stored, all_of(source.spec(filling.stored)),
                  [&](const core::Range& piece, const at::Tensor& values) {
                    auto stored = values.to(tensor.scalar_type()).contiguous().view(at::kByte);
                    const auto width = static_cast<std::int64_t>(tensor.element_size());
                    formats::for_each_piece(tensor, piece, piece.size(), [&](const at::Tensor& part) {
                      const auto mine = formats::ready_to_store(part).view({-1}).view(at::kByte);
                      same = same && at::equal(stored.narrow(0, 0, part.numel() * width), mine);
                      stored = stored.narrow(0, part.numel() * width, stored.numel() - part.numel() * width);
                    });
                  });
  return same;
}

}  // namespace hortator::weights
