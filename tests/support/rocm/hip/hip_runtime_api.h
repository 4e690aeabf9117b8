#pragma once

// What Hortator uses of HIP's header, for tests on machines without ROCm: fake_hip.cpp defines the functions.
#include <cstddef>

enum hipError_t { hipSuccess = 0, hipErrorOutOfMemory = 2, hipErrorInvalidDevice = 101 };
struct hipUUID {
  char bytes[16];
};
using hipDevice_t = int;
constexpr unsigned hipHostMallocDefault = 0;

extern "C" {
hipError_t hipDeviceGetUuid(hipUUID* uuid, hipDevice_t device);
hipError_t hipDeviceGetPCIBusId(char* address, int length, int device);
hipError_t hipDeviceGetName(char* name, int length, hipDevice_t device);
hipError_t hipHostMalloc(void** memory, std::size_t bytes, unsigned flags);
hipError_t hipHostFree(void* memory);
hipError_t hipGetLastError();
const char* hipGetErrorString(hipError_t error);
}
