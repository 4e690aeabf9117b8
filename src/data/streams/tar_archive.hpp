#pragma once

#include <cstdint>
#include <hortator/datasets/tar_shards.hpp>
#include <optional>
#include <string>

#include "data/files/tar_names.hpp"
#include "data/streams/content_file.hpp"
#include "formats/tar/members.hpp"

namespace hortator::data {

/// The samples of a tar archive from where its file is to the end.
class TarArchive {
 public:
  /// A file of more than `max_bytes` is an error.
  TarArchive(ContentFile& file, std::uint64_t max_bytes);

  /// The next sample; nothing after the last, when the archive was found to be whole.
  std::optional<TarSample> next();
  /// Where the headers of the next sample begin in the content.
  std::uint64_t position() const { return position_; }

 private:
  void find_member();
  void add_member(TarSample& sample);
  std::string content() const;
  void require_zeros();

  ContentFile& file_;
  std::uint64_t max_bytes_;
  formats::TarMembers members_;
  std::uint64_t position_;
  std::optional<formats::TarMember> member_;  ///< the first of the next sample, whose content is still to be read
  TarName name_;                              ///< of it
  bool is_over_ = false;                      ///< the mark of the archive's end was read
};

}  // namespace hortator::data
