#include <hortator/datasets/line_stream.hpp>

#include "data/streams/line_files.hpp"

namespace hortator {

LineStream::LineStream(const std::vector<std::filesystem::path>& files, const FileStreamOptions& options)
    : files_(std::make_unique<data::LineFiles>(files, options)) {}

LineStream::~LineStream() = default;
LineStream::LineStream(LineStream&& other) noexcept = default;
LineStream& LineStream::operator=(LineStream&& other) noexcept = default;

std::optional<std::string> LineStream::next() {
  const auto line = files_->next();
  return line ? std::optional(std::string(*line)) : std::nullopt;
}

void LineStream::reset() { files_->reset(); }
void LineStream::select_files(int world, int rank) { files_->select(world, rank); }
void LineStream::save(StateWriter& out) const { files_->save(out); }
void LineStream::load(const StateReader& in) { files_->load(in); }

}  // namespace hortator
