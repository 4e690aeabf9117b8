#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hortator::models::chat {

enum class TokenKind { name, number, string, op, end };

/// A token of an expression or statement.
struct TemplateToken {
  TokenKind kind = TokenKind::end;
  std::string text = {};
  std::size_t line = 0;
};

enum class SegmentKind { text, output, statement };

/// Text as it is, {{ an expression }}, or {% a statement %}. Comments are left out.
struct Segment {
  SegmentKind kind = SegmentKind::text;
  std::string text = {};
  std::vector<TemplateToken> tokens = {};  ///< the last is an end
  std::size_t line = 0;
};

/// The segments of a template, with white space removed as Jinja does with trim_blocks and lstrip_blocks.
std::vector<Segment> segments_of(std::string_view source);

}  // namespace hortator::models::chat
