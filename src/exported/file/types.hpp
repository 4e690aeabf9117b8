#pragma once

#include <c10/core/Device.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

#include "exported/file/field.hpp"

/// LibTorch's types by the numbers of the file's schema. Functions throw ExportFault for numbers that it does not have.
namespace hortator::exported {

c10::ScalarType scalar_type_in(const Field& field);
c10::MemoryFormat memory_format_in(const Field& field);
c10::Layout layout_in(const Field& field);
c10::Device device_in(const Field& field);

}  // namespace hortator::exported
