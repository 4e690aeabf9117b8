#pragma once

// Symbols are hidden unless marked: what users may call is exactly what the public headers mark.
#define HORTATOR_API __attribute__((visibility("default")))
