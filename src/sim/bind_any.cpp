#include "sim/bind.h"

namespace iket::sim {

bool IKET_SIM_ISA::BindAny(Op& op, uint32_t index) {
  return BindMove(op) || BindInteger(op) || BindLogic(op) || BindFloat(op) || BindDouble(op) ||
         BindHalf(op) || BindConvert(op) || BindUniform(op) || BindMemory(op) || BindAtomic(op) ||
         BindControl(op, index) || BindWarpwide(op) || BindBarrier(op) || BindMatrix(op);
}

}  // namespace iket::sim
