#pragma once

#include <hortator/hortator.h>

// What the handles of the C interface point to: bases of the classes that implement them.
struct hortator_run {};
struct hortator_model {};
struct hortator_batch {};
struct hortator_buffer {};
