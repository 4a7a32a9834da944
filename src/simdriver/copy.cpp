#include "simdriver/copy.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "simdriver/memory.h"

// Addresses are numbers here: NOLINTBEGIN(performance-no-int-to-ptr)

namespace iket::simdriver {
namespace {

// One row. False if a device address is not mapped.
bool CopyRow(const CopyShape& shape, uint64_t to, uint64_t from) {
  const auto from_host = [&](std::byte* destination, uint64_t source, uint64_t bytes) {
    if (!shape.from.on_device) {
      std::memmove(destination, reinterpret_cast<const void*>(source), bytes);
      return true;
    }
    return ForEachPiece(source, bytes, [&](const std::byte* piece, uint64_t count) {
      std::memmove(destination, piece, count);
      destination += count;
    });
  };
  if (!shape.to.on_device) return from_host(reinterpret_cast<std::byte*>(to), from, shape.width);
  bool whole = true;
  const bool mapped = ForEachPiece(to, shape.width, [&](std::byte* piece, uint64_t count) {
    whole = whole && from_host(piece, from, count);
    from += count;
  });
  return mapped && whole;
}

// From this on zeroing gives pages back to the system instead of touching them.
constexpr uint64_t kManyBytes = uint64_t{1} << 20;
constexpr uint64_t kPage = 4096;

// Zeroes a stretch of shared or private pages.
void Zero(std::byte* piece, uint64_t bytes) {
  const auto start = reinterpret_cast<uint64_t>(piece);
  const uint64_t first = (start + kPage - 1) / kPage * kPage;
  const uint64_t last = (start + bytes) / kPage * kPage;
  // MADV_REMOVE works on shared memory alone; on private pages it fails and changes nothing.
  if (bytes < kManyBytes ||
      madvise(reinterpret_cast<void*>(first), last - first, MADV_REMOVE) != 0) {
    std::memset(piece, 0, bytes);
    return;
  }
  std::memset(piece, 0, first - start);
  std::memset(reinterpret_cast<void*>(last), 0, start + bytes - last);
}

void Fill(std::byte* piece, uint64_t bytes, unsigned value, unsigned element) {
  if (value == 0) return Zero(piece, bytes);
  if (element == 1) {
    std::memset(piece, static_cast<int>(value), bytes);
    return;
  }
  for (uint64_t i = 0; i + element <= bytes; i += element) std::memcpy(piece + i, &value, element);
}

// One end of a copy as the API has it.
struct Side {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  size_t x, y, z, lod;
  size_t pitch, height;
};

std::optional<CUresult> ReadSide(const Side& side, const CUDA_MEMCPY3D& asked, CopySide* out) {
  uint64_t address = 0;
  switch (side.type) {
    case CU_MEMORYTYPE_HOST:
      address = reinterpret_cast<uint64_t>(side.host);
      break;
    case CU_MEMORYTYPE_DEVICE:
      address = side.device;
      out->on_device = true;
      break;
    case CU_MEMORYTYPE_UNIFIED:
      address = side.device;
      out->on_device = IsDeviceRange(address, 1);
      break;
    case CU_MEMORYTYPE_ARRAY:
      return CUDA_ERROR_NOT_SUPPORTED;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  if (address == 0 || side.lod != 0) return CUDA_ERROR_INVALID_VALUE;
  out->pitch = side.pitch != 0 ? side.pitch : side.x + asked.WidthInBytes;
  out->rows = side.height != 0 ? side.height : side.y + asked.Height;
  const bool one_row = asked.Height == 1 && asked.Depth == 1;
  if (!one_row && out->pitch < side.x + asked.WidthInBytes) return CUDA_ERROR_INVALID_VALUE;
  if (asked.Depth > 1 && out->rows < side.y + asked.Height) return CUDA_ERROR_INVALID_VALUE;
  out->address = address + (side.z * out->rows + side.y) * out->pitch + side.x;
  if (!out->on_device) return std::nullopt;
  // From the first byte to the last; what is more than all addresses is no range.
  const unsigned __int128 bytes =
      (static_cast<unsigned __int128>(asked.Depth - 1) * out->rows + asked.Height - 1) *
          out->pitch +
      asked.WidthInBytes;
  if (bytes >> 64 != 0 || !IsDeviceRange(out->address, static_cast<uint64_t>(bytes))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return std::nullopt;
}

}  // namespace

bool IsDeviceRange(uint64_t address, uint64_t bytes) {
  return address + bytes >= address &&
         ForEachPiece(address, bytes, [](const std::byte*, uint64_t) {});
}

CUresult CopyOperation::Run() const {
  for (uint64_t z = 0; z < shape_.depth; ++z) {
    for (uint64_t y = 0; y < shape_.height; ++y) {
      const uint64_t to = shape_.to.address + (z * shape_.to.rows + y) * shape_.to.pitch;
      const uint64_t from = shape_.from.address + (z * shape_.from.rows + y) * shape_.from.pitch;
      if (!CopyRow(shape_, to, from)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
  }
  return CUDA_SUCCESS;
}

CUresult MemsetOperation::Run() const {
  for (size_t row = 0; row < params_.height; ++row) {
    const bool mapped =
        ForEachPiece(params_.dst + row * params_.pitch, params_.width * params_.elementSize,
                     [&](std::byte* piece, uint64_t bytes) {
                       Fill(piece, bytes, params_.value, params_.elementSize);
                     });
    if (!mapped) return CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  return CUDA_SUCCESS;
}

CUresult ShapeOfCopy(const CUDA_MEMCPY3D& asked, CopyShape* shape) {
  *shape = {};
  shape->width = asked.WidthInBytes;
  shape->height = asked.Height;
  shape->depth = asked.Depth;
  if (shape->width == 0 || shape->height == 0 || shape->depth == 0) {
    shape->height = 0;  // nothing to do
    return CUDA_SUCCESS;
  }
  const Side from{asked.srcMemoryType, asked.srcHost,  asked.srcDevice,
                  asked.srcXInBytes,   asked.srcY,     asked.srcZ,
                  asked.srcLOD,        asked.srcPitch, asked.srcHeight};
  const Side to{asked.dstMemoryType, asked.dstHost, asked.dstDevice, asked.dstXInBytes, asked.dstY,
                asked.dstZ,          asked.dstLOD,  asked.dstPitch,  asked.dstHeight};
  if (const auto error = ReadSide(from, asked, &shape->from)) return *error;
  if (const auto error = ReadSide(to, asked, &shape->to)) return *error;
  return CUDA_SUCCESS;
}

CUresult CheckMemset(const CUDA_MEMSET_NODE_PARAMS& params) {
  const unsigned element = params.elementSize;
  if (element != 1 && element != 2 && element != 4) return CUDA_ERROR_INVALID_VALUE;
  if (params.width == 0 || params.height == 0) return CUDA_SUCCESS;
  const uint64_t row = params.width * element;
  if (params.dst % element != 0 || row / element != params.width) return CUDA_ERROR_INVALID_VALUE;
  if (params.height > 1 && (params.pitch < row || params.pitch % element != 0)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const unsigned __int128 bytes =
      static_cast<unsigned __int128>(params.height - 1) * params.pitch + row;
  const bool fits = bytes >> 64 == 0 && IsDeviceRange(params.dst, static_cast<uint64_t>(bytes));
  return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUDA_MEMCPY3D PlainCopy(CUmemorytype to_type, uint64_t to, CUmemorytype from_type, uint64_t from,
                        size_t bytes) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = from_type;
  copy.dstMemoryType = to_type;
  if (from_type == CU_MEMORYTYPE_HOST) {
    copy.srcHost = reinterpret_cast<const void*>(from);
  } else {
    copy.srcDevice = from;
  }
  if (to_type == CU_MEMORYTYPE_HOST) {
    copy.dstHost = reinterpret_cast<void*>(to);
  } else {
    copy.dstDevice = to;
  }
  copy.WidthInBytes = bytes;
  copy.Height = 1;
  copy.Depth = 1;
  return copy;
}

}  // namespace iket::simdriver
// NOLINTEND(performance-no-int-to-ptr)
