"""What follows from derivatives of kernels: Jacobians of trees and of closed motions, the regressor."""
